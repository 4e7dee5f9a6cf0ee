// heat_strip.tsx  How sure the model was, token by token: the text once more, the doubtful parts warm.
import { t } from '../i18n'
import type { Heat } from '../store/conversations'
import { count } from '../ui/format'

// Five steps, so that the strip can be read without telling fine shades apart.
const level = (certainty: number) => Math.min(4, Math.max(0, Math.floor((1 - certainty) * 6)))

export function HeatStrip({ heat }: { heat: Heat[] }) {
  const mean = heat.reduce((sum, h) => sum + h.certainty, 0) / heat.length
  return (
    <details class="heat">
      <summary>{t('heatSummary', { n: count(mean * 100, 1) })}</summary>
      <p>
        {heat.map((h, i) => (
          <span
            key={i}
            data-heat={level(h.certainty)}
            title={t('heatToken', { certainty: count(h.certainty * 100, 1), entropy: count(h.entropy, 2) })}
          >
            {h.token}
          </span>
        ))}
      </p>
    </details>
  )
}
