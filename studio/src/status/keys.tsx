// keys.tsx  Tokens by key: those of this page's own, or of all where the server shows them.
import type { KeyTokens, TokenCounts } from '../api/types'
import { t } from '../i18n'
import { count } from '../ui/format'
import { overview } from './history'

// What a budget counts.
const computed = ({ prompt, cached, generated }: TokenCounts) => prompt - cached + generated

const Row = ({ of: { name, today, all, tokens_per_day } }: { of: KeyTokens }) => (
  <tr>
    <th scope="row">{name ?? t('keysNone')}</th>
    <td>
      {count(today.prompt)}
      {today.cached > 0 && ` (${count(today.cached)} ${t('cached')})`}
    </td>
    <td>{count(today.generated)}</td>
    <td>{tokens_per_day === null ? '–' : t('keysOf', { used: count(computed(today)), budget: count(tokens_per_day) })}</td>
    <td>{count(computed(all))}</td>
  </tr>
)

export function Keys() {
  const keys = overview.value?.keys ?? []
  if (!keys.length) return null
  return (
    <section class="requests" aria-labelledby="keys-title">
      <h2 id="keys-title">{t('keysTitle')}</h2>
      <div class="table-scroller" tabIndex={0} role="region" aria-labelledby="keys-title">
        <table>
          <thead>
            <tr>
              <th scope="col">{t('keysName')}</th>
              <th scope="col">{t('keysPrompt')}</th>
              <th scope="col">{t('keysGenerated')}</th>
              <th scope="col">{t('keysBudget')}</th>
              <th scope="col">{t('keysAll')}</th>
            </tr>
          </thead>
          <tbody>
            {keys.map((key) => (
              <Row key={key.name} of={key} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
