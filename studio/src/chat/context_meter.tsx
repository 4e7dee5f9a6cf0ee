// context_meter.tsx  How much of the model's context is taken, with the draft, and a word before it is full.
import { useEffect, useRef } from 'preact/hooks'
import { t } from '../i18n'
import { useConversationTokens, useDraftTokens } from '../store/context_use'
import type { Conversation } from '../store/conversations'
import type { Live } from '../store/generation'
import { contextLength } from '../store/model'
import { announce } from '../ui/announcer'
import { count } from '../ui/format'

const NEAR_FULL = 0.85

interface Props {
  conversation: Conversation | undefined
  live: Live | null
}

// Tokens of the answer that is being written, since it began or went on.
function useWritten(live: Live | null): number {
  const tokens = live?.text.value.speed.tokens ?? 0
  const began = useRef({ live, tokens })
  if (began.current.live !== live) began.current = { live, tokens }
  return tokens - began.current.tokens
}

export function ContextMeter({ conversation, live }: Props) {
  const context = contextLength.value
  const before = useConversationTokens(conversation, live)
  const draft = useDraftTokens(conversation?.id ?? null)
  const written = useWritten(live)
  const used = before === null ? null : before + draft + written
  const isNearFull = context !== null && used !== null && used >= NEAR_FULL * context
  const left = Math.max(0, (context ?? 0) - (used ?? 0))
  const warning = isNearFull ? t('contextNearFull', { n: count(left) }) : ''
  useEffect(() => {
    if (isNearFull) announce(warning)
  }, [isNearFull])
  if (context === null || !used) return <div class="meter" />
  const text = t('contextUsed', { used: count(used), context: count(context) })
  return (
    <div class={isNearFull ? 'meter near-full' : 'meter'}>
      {warning && <span class="warning">{warning}</span>}
      <span aria-hidden="true">{text}</span>
      <span
        class="bar"
        role="meter"
        aria-label={t('modelContext')}
        aria-valuemin={0}
        aria-valuemax={context}
        aria-valuenow={Math.min(used, context)}
        aria-valuetext={text}
      >
        <span style={{ width: `${Math.min(100, (100 * used) / context)}%` }} />
      </span>
    </div>
  )
}
