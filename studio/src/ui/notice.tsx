// notice.tsx  Short messages at the foot of the page, gone after a while.
import { signal } from '@preact/signals'
import { t } from '../i18n'
import { Cross } from './icons'

interface Notice {
  text: string
  kind: 'info' | 'error'
}

const current = signal<Notice | null>(null)
let timer = 0

export function notify(text: string, kind: Notice['kind'] = 'info') {
  current.value = { text, kind }
  clearTimeout(timer)
  timer = window.setTimeout(() => (current.value = null), 8000)
}

export const NoticeBar = () => (
  <div class="notice-place" role="status">
    {current.value && (
      <div class={`notice ${current.value.kind}`}>
        <span>{current.value.text}</span>
        <button type="button" class="quiet small" aria-label={t('close')} onClick={() => (current.value = null)}>
          <Cross />
        </button>
      </div>
    )}
  </div>
)
