// alternatives.tsx  What else the model might have written at one place, and the way to go on from there.
import { useLayoutEffect, useRef } from 'preact/hooks'
import { t } from '../i18n'
import type { Heat, Message } from '../store/conversations'
import { chooseToken } from '../store/generation'
import { isWhole, markOf, textBefore } from '../store/tokens'
import { count } from '../ui/format'

interface Props {
  conversationId: string
  message: Message
  at: number // which token
  heat: Heat
  isBusy: boolean
  where: { left: number; top: number }
  onClose: (isChosen: boolean) => void
  onLeave: () => void // the focus went elsewhere by itself
}

// Blanks can be seen here.
const visible = (token: string) => token.replace(/ /g, '␣').replace(/\n/g, '↵').replace(/\t/g, '⇥')

export function Alternatives({ conversationId, message, at, heat, isBusy, where, onClose, onLeave }: Props) {
  const box = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const first = box.current?.querySelector<HTMLElement>('button:enabled') ?? box.current
    first?.focus({ preventScroll: true })
    box.current?.scrollIntoView({ block: 'nearest' })
  }, [at])
  const before = textBefore(message, at)
  const total = Math.max(...heat.others!.map((other) => other.share))
  return (
    <div
      ref={box}
      class="alternatives"
      role="dialog"
      tabIndex={-1}
      aria-label={t('alternatives')}
      style={{ left: `${where.left}px`, top: `${where.top}px` }}
      onFocusOut={(event) => {
        if (!box.current?.contains(event.relatedTarget as Node | null)) onLeave()
      }}
      onKeyDown={(event) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
        const buttons = [...box.current!.querySelectorAll<HTMLElement>('button:enabled')]
        if (step) buttons[buttons.indexOf(document.activeElement as HTMLElement) + step]?.focus()
        else if (event.key === 'Escape') onClose(false)
        else return
        event.preventDefault()
      }}
    >
      <p class="hint">{t(before === null ? 'alternativesNotHere' : 'alternativesHint')}</p>
      <ul>
        {heat.others!.map(({ token, share }, i) => {
          const isTaken = token === heat.token
          const mark = markOf(token)
          const canTake = before !== null && !isTaken && !mark && isWhole(token) && !isBusy
          return (
            <li key={i}>
              <button
                type="button"
                class="quiet small"
                aria-current={isTaken ? 'true' : undefined}
                disabled={!canTake}
                onClick={() => {
                  onClose(true)
                  chooseToken(conversationId, message.id, at, before!, token)
                }}
              >
                <span class="mono">{mark?.kind === 'control' ? mark.name : visible(token)}</span>
                <span class="share" aria-hidden="true">
                  <span style={{ width: `${(100 * share) / total}%` }} />
                </span>
                <span class="percent">{count(share * 100, 1)} %</span>
                {isTaken && <span class="hidden-text">{t('alternativeTaken')}</span>}
              </button>
            </li>
          )
        })}
      </ul>
    </div>
  )
}
