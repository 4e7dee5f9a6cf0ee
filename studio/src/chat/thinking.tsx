// thinking.tsx  The model's thoughts: folded away, counted while they grow, and stoppable.
import { t } from '../i18n'
import { Markdown } from '../markdown/markdown'
import { count } from '../ui/format'
import { useState } from 'preact/hooks'

interface Props {
  text: string
  tokens: number
  isOpenEnded: boolean // the thought still grows
  onStop: (() => void) | null
}

export function Thinking({ text, tokens, isOpenEnded, onStop }: Props) {
  const [isShown, setIsShown] = useState(false)
  // A conversation that came from a Markdown file has no counts.
  const label = isOpenEnded
    ? t('thinkingNow', { n: count(tokens) })
    : tokens > 0
      ? t('thinkingDone', { n: count(tokens) })
      : t('thinkingUncounted')
  return (
    <section class="thinking" aria-label={t('thinking')}>
      <header>
        <button type="button" class="quiet small" aria-expanded={isShown} onClick={() => setIsShown(!isShown)}>
          <span class={isShown ? 'fold open' : 'fold'} aria-hidden="true" />
          {label}
        </button>
        {isOpenEnded && onStop && (
          <button type="button" class="small" onClick={onStop}>
            {t('stopThinking')}
          </button>
        )}
      </header>
      {isShown && <Markdown text={text} isGrowing={isOpenEnded} />}
    </section>
  )
}
