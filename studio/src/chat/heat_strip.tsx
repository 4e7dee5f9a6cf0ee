// heat_strip.tsx  How sure the model was, token by token: the text once more, the doubtful parts warm, and a line below
// what was guessed ahead. A token opens what else might have stood in its place.
import { useEffect, useRef, useState } from 'preact/hooks'
import { t } from '../i18n'
import type { Heat, Message } from '../store/conversations'
import { markOf } from '../store/tokens'
import { count } from '../ui/format'
import { memo } from '../ui/memo'
import { Alternatives } from './alternatives'

// Five steps, so that the strip can be read without telling fine shades apart.
const level = (certainty: number) => Math.min(4, Math.max(0, Math.floor((1 - certainty) * 6)))

// Tokens that steer the model are no text to be read: each has a name.
function nameOf(token: string): string | null {
  const mark = markOf(token)
  if (!mark) return null
  return mark.kind === 'control' ? mark.name : t(mark.isEnd ? 'heatThoughtEnds' : 'heatThoughtBegins')
}

interface TokenProps extends Heat {
  at: number
  isStop: boolean // where the Tab key goes
  isOpen: boolean
}

const Token = memo(({ token, certainty, entropy, guessed, chosen, others, at, isStop, isOpen }: TokenProps) => {
  const name = nameOf(token)
  const title = t('heatToken', { certainty: count(certainty * 100, 1), entropy: count(entropy, 2) })
  const names = [name && 'mark', guessed && 'guessed', chosen && 'chosen'].filter(Boolean).join(' ')
  const blank = token.includes('\n') ? t('tokenLine') : t('tokenBlank')
  const button = others && {
    role: 'button' as const,
    tabIndex: isStop ? 0 : -1,
    'data-at': at,
    'aria-expanded': isOpen,
    'aria-label': token.trim() ? undefined : blank,
  }
  return (
    <span
      {...button}
      class={names || undefined}
      data-heat={level(certainty)}
      title={[title, guessed && t('heatGuessed'), chosen && t('heatChosen')].filter(Boolean).join(', ')}
    >
      {name ?? token}
    </span>
  )
})

interface Props {
  conversationId: string
  message: Message
  heat: Heat[]
  isBusy: boolean
}

// The strip in which a token was chosen gives way to that of the new variant, which stays open, with the keyboard on it.
let opensNext = false

export function HeatStrip({ conversationId, message, heat, isBusy }: Props) {
  const summary = useRef<HTMLElement>(null)
  const [isOpen, setIsOpen] = useState(() => opensNext)
  const [moved, setStop] = useState<number | null>(null)
  const first = heat.findIndex((h) => h.others)
  const stop = moved ?? first
  const [opened, setOpened] = useState<{ at: number; left: number; top: number } | null>(null)
  const strip = useRef<HTMLParagraphElement>(null)
  const mean = heat.reduce((sum, h) => sum + h.certainty, 0) / heat.length
  const guessed = heat.filter((h) => h.guessed).length
  const tokenAt = (at: number) => strip.current?.querySelector<HTMLElement>(`[data-at="${at}"]`)

  useEffect(() => {
    if (opensNext) summary.current?.focus({ preventScroll: true })
    opensNext = false
  }, [])
  const open = (at: number) => {
    const token = tokenAt(at)
    if (!token || !heat[at]?.others) return
    setStop(at)
    const widest = strip.current!.clientWidth - 260
    setOpened({ at, left: Math.max(0, Math.min(token.offsetLeft, widest)), top: token.offsetTop + token.offsetHeight })
  }
  const close = (isChosen: boolean) => {
    opensNext = isChosen
    if (opened) tokenAt(opened.at)?.focus()
    setOpened(null)
  }
  const onKey = (event: KeyboardEvent) => {
    const next = { ArrowRight: stop + 1, ArrowLeft: stop - 1, Home: 0, End: heat.length - 1 }[event.key]
    if (event.key === 'Enter' || event.key === ' ') open(stop)
    else if (next !== undefined && tokenAt(next)) {
      setStop(next)
      tokenAt(next)!.focus()
    } else return
    event.preventDefault()
  }
  return (
    <details class="heat" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary ref={summary}>
        {t('heatSummary', { n: count(mean * 100, 1) })}
        {guessed > 0 && ` · ${t('guessedAhead', { n: count(guessed) })}`}
      </summary>
      {isOpen && (
        <div class="strip">
          <p
            ref={strip}
            role={first < 0 ? undefined : 'toolbar'}
            aria-label={first < 0 ? undefined : t('heatTokens')}
            onClick={(event) => {
              const token = (event.target as Element).closest<HTMLElement>('[data-at]')
              if (token) open(Number(token.dataset.at))
            }}
            onKeyDown={onKey}
          >
            {heat.map((h, i) => (
              <Token key={i} {...h} at={i} isStop={i === stop} isOpen={i === opened?.at} />
            ))}
          </p>
          {opened && heat[opened.at] && (
            <Alternatives
              {...{ conversationId, message, isBusy }}
              at={opened.at}
              heat={heat[opened.at]!}
              where={opened}
              onClose={close}
              onLeave={() => setOpened(null)}
            />
          )}
        </div>
      )}
    </details>
  )
}
