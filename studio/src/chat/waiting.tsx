// waiting.tsx  Before the first token: that something is coming, and how far the model is where it has to be loaded first,
// or how much of a long prompt is read.
import { t } from '../i18n'
import { chatModel } from '../store/model'
import { count } from '../ui/format'

// `read`: of the prompt, 0 to 1; null: not known.
export function Waiting({ read }: { read: number | null }) {
  const { id = '', status } = chatModel.value ?? {}
  const progress = status?.value === 'loading' ? (status.progress ?? 0) : null
  if (progress === null && read !== null && read < 1) {
    const text = t('promptIsRead', { n: count(read * 100) })
    return (
      <p class="waiting">
        <span class="dots" aria-hidden="true" />
        <span class="late">
          <progress max={1} value={read} aria-label={text} />
          <span class="hint">{text}</span>
        </span>
      </p>
    )
  }
  if (progress === null) {
    return (
      <p class="waiting">
        <span class="dots" aria-hidden="true" />
        <span class={status?.value === 'unloaded' ? 'hint' : 'hidden-text'}>
          {status?.value === 'unloaded' ? t('modelWaits', { name: id }) : t('waiting')}
        </span>
      </p>
    )
  }
  const text = t('modelLoads', { name: id, n: count(progress * 100) })
  return (
    <p class="waiting">
      <progress max={1} value={progress} aria-label={text} />
      <span class="hint">{text}</span>
    </p>
  )
}
