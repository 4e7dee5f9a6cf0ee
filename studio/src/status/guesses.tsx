// guesses.tsx  What guesses at the next tokens brought, and how often they were right, by where they came from and by
// their place in a draft.
import type { GuessSource, Speculation } from '../api/types'
import { t } from '../i18n'
import { count, share } from '../ui/format'

function gained(speculation: Speculation): string {
  const { mean_accepted_length: length, draft_time_share: spent, draft_gain: gain } = speculation
  const parts = [
    length !== undefined && t('guessLength', { n: count(length, 2) }),
    spent !== undefined && t('guessTime', { share: `${count(100 * spent, 1)} %` }),
    gain !== undefined && t('guessGain', { n: count(gain, 2) }),
  ]
  return parts.filter((part) => part !== false).join(' · ')
}

export function Guesses({ speculation, sources }: { speculation: Speculation; sources: GuessSource[] }) {
  const places = Math.max(...sources.map((source) => source.by_position.length))
  return (
    <section class="requests" aria-labelledby="guesses-title">
      <h2 id="guesses-title">{t('guesses')}</h2>
      <p class="hint">{gained(speculation)}</p>
      <div class="table-scroller" tabIndex={0} role="region" aria-labelledby="guesses-title">
        <table>
          <thead>
            <tr>
              <th scope="col">{t('guessSource')}</th>
              <th scope="col">{t('guessTried')}</th>
              <th scope="col">{t('guessRight')}</th>
              {Array.from({ length: places }, (_, place) => (
                <th scope="col" key={place} title={t('guessPlace', { n: place + 1 })}>
                  {place + 1}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sources.map((source) => (
              <tr key={source.source}>
                <th scope="row" class="mono">
                  {source.source}
                </th>
                <td>{count(source.draft_tokens)}</td>
                <td>{share(source.accepted_tokens, source.draft_tokens)}</td>
                {Array.from({ length: places }, (_, place) => {
                  const at = source.by_position[place]
                  return <td key={place}>{at && share(at.accepted_tokens, at.draft_tokens)}</td>
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
