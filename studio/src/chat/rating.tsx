// rating.tsx  What the user thinks of an answer: two thumbs, and what would have been right.
import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { t } from '../i18n'
import type { Message } from '../store/conversations'
import { canRate, correctAnswer, rate, type Thumb } from '../store/learning'
import { useGrowth } from '../ui/growth'
import { ThumbDown, ThumbUp } from '../ui/icons'

export function Correction({ message, onClose }: { message: Message; onClose: () => void }) {
  const [text, setText] = useState('')
  const area = useRef<HTMLTextAreaElement>(null)
  useGrowth(area, text)
  return (
    <form
      class="edit correction"
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        event.preventDefault()
        onClose()
      }}
      onSubmit={async (event) => {
        event.preventDefault()
        if (await correctAnswer(message, text.trim())) onClose()
      }}
    >
      <label>
        {t('learningBetter')}
        <textarea rows={2} value={text} onInput={(event) => setText(event.currentTarget.value)} ref={area} />
      </label>
      <div class="buttons">
        <button type="button" class="quiet" onClick={onClose}>
          {t('cancel')}
        </button>
        <button type="submit" class="main" disabled={!text.trim()}>
          {t('learningSend')}
        </button>
      </div>
    </form>
  )
}

// `onBad`: whether what would have been right is asked for now.
export function Rating({ conversationId, message, onBad }: { conversationId: string; message: Message; onBad: (isAsked: boolean) => void }) {
  if (!canRate.value || !message.requestId) return null
  const thumb = (kind: Thumb, name: string, Icon: () => JSX.Element) => (
    <button
      type="button"
      class="quiet small thumb"
      aria-pressed={message.thumb === kind}
      aria-label={name}
      title={name}
      onClick={() => {
        const isTakenBack = message.thumb === kind
        rate(conversationId, message, isTakenBack ? null : kind)
        onBad(kind === 'down' && !isTakenBack)
      }}
    >
      <Icon />
    </button>
  )
  return (
    <>
      {thumb('up', t('ratingGood'), ThumbUp)}
      {thumb('down', t('ratingBad'), ThumbDown)}
    </>
  )
}
