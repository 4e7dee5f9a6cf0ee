// notice.tsx  Short messages at the foot of the page, each gone after a while.
import { signal } from '@preact/signals'
import { t } from '../i18n'
import { Cross } from './icons'

interface Notice {
  id: number
  text: string
  kind: 'info' | 'error'
  action?: Action
}

interface Action {
  verb: string
  run: () => void
}

const SHOWN_MS = { info: 8000, error: 15000, action: 15000 }
const AGAIN_MS = 2000

const notices = signal<Notice[]>([])
let last = 0

const close = (id: number) => (notices.value = notices.value.filter((notice) => notice.id !== id))

// A notice that somebody is reading or about to press stays.
function closeWhenLeft(id: number) {
  if (document.querySelector(`.notice[data-id="${id}"]:is(:hover, :focus-within)`)) {
    setTimeout(() => closeWhenLeft(id), AGAIN_MS)
  } else {
    close(id)
  }
}

function show(notice: Omit<Notice, 'id'>, ms: number) {
  const id = ++last
  // The same words again stand for the older ones.
  notices.value = [...notices.value.filter(({ text }) => text !== notice.text), { id, ...notice }]
  setTimeout(() => closeWhenLeft(id), ms)
}

export const notify = (text: string, kind: Notice['kind'] = 'info') => show({ text, kind }, SHOWN_MS[kind])

export const offer = (text: string, verb: string, run: () => void) =>
  show({ text, kind: 'info', action: { verb, run } }, SHOWN_MS.action)

export const NoticeBar = () => (
  <div class="notice-place" role="status">
    {notices.value.map(({ id, text, kind, action }) => (
      <div key={id} class={`notice ${kind}`} data-id={id}>
        <span>{text}</span>
        {action && (
          <button
            type="button"
            class="small"
            onClick={() => {
              close(id)
              action.run()
            }}
          >
            {action.verb}
          </button>
        )}
        <button type="button" class="quiet small" aria-label={t('close')} onClick={() => close(id)}>
          <Cross />
        </button>
      </div>
    ))}
  </div>
)
