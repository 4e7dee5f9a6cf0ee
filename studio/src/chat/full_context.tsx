// full_context.tsx  What is said where the model's context is full, the way on, and the mark of where that way began.
import { t } from '../i18n'
import { find, type Message } from '../store/conversations'
import { goOn, includeAll } from '../store/generation'
import { laterStart, leftOut } from '../store/window'
import { count } from '../ui/format'

interface Props {
  conversationId: string
  message: Message
  isBusy: boolean
}

export function FullContext({ conversationId, message, isBusy }: Props) {
  const conversation = find(conversationId)
  const { context = null, tokens = null } = message.size ?? {}
  const isLast = conversation?.messages.at(-1)?.id === message.id
  const isAlone = !conversation || laterStart(conversation, { tokens, context }) === null
  const isLeftOut = conversation !== undefined && leftOut(conversation) === conversation.messages.length
  const isOverlong = message.outcome === 'overlong'
  const words = !isOverlong ? 'contextFull' : isAlone && isLast ? 'contextAlone' : 'contextOverlong'
  return (
    <div class="ending offer">
      <span>{t(words, { of: context ? t('contextSize', { n: count(context) }) : '' })}</span>
      {isLast && !isLeftOut && !(isOverlong && isAlone) && (
        <button type="button" class="main small" disabled={isBusy} onClick={() => goOn(conversationId)}>
          {t('contextGoOn')}
        </button>
      )}
    </div>
  )
}

// Stands above the first message that is sent.
export const WindowMark = ({ conversationId, isBusy }: Omit<Props, 'message'>) => (
  <div class="window-mark" role="note">
    <span>{t('contextMark')}</span>
    <button type="button" class="quiet small" disabled={isBusy} onClick={() => includeAll(conversationId)}>
      {t('contextInclude')}
    </button>
  </div>
)
