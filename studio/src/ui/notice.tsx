// notice.tsx  Short messages at the foot of the page, each gone after a while.
import { signal } from '@preact/signals'
import { t } from '../i18n'
import { Cross } from './icons'

interface Notice {
  id: number
  text: string
  kind: 'info' | 'error'
}

const SHOWN_MS = { info: 8000, error: 15000 }

const notices = signal<Notice[]>([])
let last = 0

const close = (id: number) => (notices.value = notices.value.filter((notice) => notice.id !== id))

export function notify(text: string, kind: Notice['kind'] = 'info') {
  const id = ++last
  // The same words again stand for the older ones.
  notices.value = [...notices.value.filter((notice) => notice.text !== text), { id, text, kind }]
  setTimeout(() => close(id), SHOWN_MS[kind])
}

export const NoticeBar = () => (
  <div class="notice-place" role="status">
    {notices.value.map(({ id, text, kind }) => (
      <div key={id} class={`notice ${kind}`}>
        <span>{text}</span>
        <button type="button" class="quiet small" aria-label={t('close')} onClick={() => close(id)}>
          <Cross />
        </button>
      </div>
    ))}
  </div>
)
