// heat_strip.tsx  How sure the model was, token by token: the text once more, the doubtful parts warm, and a line below
// what was guessed ahead.
import { useState } from 'preact/hooks'
import { t } from '../i18n'
import type { Heat } from '../store/conversations'
import { count } from '../ui/format'

// Five steps, so that the strip can be read without telling fine shades apart.
const level = (certainty: number) => Math.min(4, Math.max(0, Math.floor((1 - certainty) * 6)))

const THOUGHT = /^\s*[<[](\/?)(?:think|thinking|thought|reasoning)[>\]]\s*$/i
const CONTROL = /^\s*<(?:\|(.+)\||(\/?tool_call))>\s*$/

// Tokens that steer the model are no text to be read: each has a name.
function markOf(token: string): string | null {
  const thought = THOUGHT.exec(token)
  if (thought) return t(thought[1] ? 'heatThoughtEnds' : 'heatThoughtBegins')
  const control = CONTROL.exec(token)
  return control && (control[1] ?? control[2]!).replace(/_/g, ' ')
}

function Token({ token, certainty, entropy, guessed }: Heat) {
  const mark = markOf(token)
  const title = t('heatToken', { certainty: count(certainty * 100, 1), entropy: count(entropy, 2) })
  const names = [mark && 'mark', guessed && 'guessed'].filter(Boolean).join(' ')
  return (
    <span
      class={names || undefined}
      data-heat={level(certainty)}
      title={guessed ? `${title}, ${t('heatGuessed')}` : title}
    >
      {mark ?? token}
    </span>
  )
}

export function HeatStrip({ heat }: { heat: Heat[] }) {
  const [isOpen, setIsOpen] = useState(false)
  const mean = heat.reduce((sum, h) => sum + h.certainty, 0) / heat.length
  const guessed = heat.filter((h) => h.guessed).length
  return (
    <details class="heat" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        {t('heatSummary', { n: count(mean * 100, 1) })}
        {guessed > 0 && ` · ${t('guessedAhead', { n: count(guessed) })}`}
      </summary>
      {isOpen && (
        <p>
          {heat.map((h, i) => (
            <Token key={i} {...h} />
          ))}
        </p>
      )}
    </details>
  )
}
