// speed_strip.tsx  What an answer cost: speed, first token, tokens, guesses, cache.
import { t } from '../i18n'
import type { Speed } from '../store/conversations'
import { count } from '../ui/format'

export function SpeedStrip({ speed }: { speed: Speed }) {
  const parts = [
    speed.tokensPerSecond !== null && t('tokensPerSecond', { n: count(speed.tokensPerSecond, 1) }),
    speed.firstTokenMs !== null && t('firstToken', { ms: count(speed.firstTokenMs) }),
    speed.thinkingTokens > 0
      ? t('tokensThinking', { n: count(speed.tokens), thinking: count(speed.thinkingTokens) })
      : t('tokens', { n: count(speed.tokens) }),
    !!speed.guessedTokens && t('guessedAhead', { n: count(speed.guessedTokens) }),
    speed.promptTokens !== null &&
      t('cacheOf', { cached: count(speed.cachedTokens ?? 0), prompt: count(speed.promptTokens) }),
  ]
  return (
    <ul class="speed">
      {parts
        .filter((part) => part !== false)
        .map((part) => (
          <li key={part}>{part}</li>
        ))}
    </ul>
  )
}
