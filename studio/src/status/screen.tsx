// screen.tsx  What the engine is doing.
import { useEffect } from 'preact/hooks'
import type { Status } from '../api/types'
import { t } from '../i18n'
import { bytes, count, duration, share } from '../ui/format'
import { Guesses } from './guesses'
import { isMissing, latest, overview, watchStatus } from './history'
import { Keys } from './keys'
import { ModelCardView } from './model_card'
import { Models } from './models'
import { Plots } from './plots'
import { Requests } from './requests'
import { Sleep } from './sleep'

// Of the model, behind what holds for the server.
const Facts = ({ status }: { status: Status }) => (
  <>
    {' · '}
    {t('ramCache')} {bytes(status.cache.ram_bytes)} · {t('diskCache')} {bytes(status.cache.disk_bytes)}
    {!!status.speculation?.draft_tokens &&
      ` · ${t('guessedOf', {
        accepted: count(status.speculation.accepted_tokens),
        drafted: count(status.speculation.draft_tokens),
      })}`}
    {status.experts_in_ram &&
      ` · ${t('expertsInRam', {
        slots: count(status.experts_in_ram.slots),
        all: count(status.experts_in_ram.count),
        share: share(status.experts_in_ram.hits, status.experts_in_ram.hits + status.experts_in_ram.misses),
      })}`}
    {status.experts_on_disk &&
      ` · ${t('expertsOnDisk', {
        ram: bytes(status.experts_on_disk.ram_bytes),
        all: bytes(status.experts_on_disk.bytes),
        share: share(status.experts_on_disk.hits, status.experts_on_disk.hits + status.experts_on_disk.misses),
      })}`}
  </>
)

export function StatusScreen() {
  useEffect(watchStatus, [])
  const status = latest.value
  const about = overview.value
  return (
    <main id="content" class="status" tabIndex={0} aria-label={t('status')}>
      <h1>{t('status')}</h1>
      {!about && isMissing.value && <p>{t('noStatus')}</p>}
      {about && (
        <>
          <p class="hint">
            {t('version', { version: about.version })} · {t('uptime', { time: duration(about.uptime_seconds) })}
            {status && <Facts status={status} />}
          </p>
          <Models list={about.models ?? []} />
          {status && <Sleep status={status} />}
          {status && <Requests />}
          <Keys />
          {status && <Plots />}
          {!!status?.speculation?.sources?.length && (
            <Guesses speculation={status.speculation} sources={status.speculation.sources} />
          )}
          {status && <ModelCardView model={status.model} />}
        </>
      )}
    </main>
  )
}
