// rating.tsx  What the user thinks of an answer: two thumbs, and what would have been right.
import { useRef, useState } from 'preact/hooks'
import { t } from '../i18n'
import type { Message } from '../store/conversations'
import { canRate, correctAnswer, learning, rate, type Thumb } from '../store/learning'
import { useGrowth } from '../ui/growth'
import { ThumbDown, ThumbUp } from '../ui/icons'

function Correction({ message, onClose }: { message: Message; onClose: () => void }) {
  const [text, setText] = useState('')
  const area = useRef<HTMLTextAreaElement>(null)
  useGrowth(area, text)
  return (
    <form
      class="edit"
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

export function Rating({ conversationId, message }: { conversationId: string; message: Message }) {
  const [isCorrecting, setIsCorrecting] = useState(false)
  if (!canRate.value || !message.requestId) return null
  const press = (thumb: Thumb) => {
    const isTakenBack = message.thumb === thumb
    rate(conversationId, message, isTakenBack ? null : thumb)
    setIsCorrecting(thumb === 'down' && !isTakenBack)
  }
  return (
    <>
      <button
        type="button"
        class="quiet small"
        aria-pressed={message.thumb === 'up'}
        aria-label={t('ratingGood')}
        title={t('ratingGood')}
        onClick={() => press('up')}
      >
        <ThumbUp />
      </button>
      <button
        type="button"
        class="quiet small"
        aria-pressed={message.thumb === 'down'}
        aria-label={t('ratingBad')}
        title={t('ratingBad')}
        onClick={() => press('down')}
      >
        <ThumbDown />
      </button>
      {isCorrecting && message.thumb === 'down' && learning.value?.keeps && (
        <Correction message={message} onClose={() => setIsCorrecting(false)} />
      )}
    </>
  )
}
