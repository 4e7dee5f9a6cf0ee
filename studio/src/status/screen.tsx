// screen.tsx  What the engine is doing.
import { useEffect } from 'preact/hooks'
import { t } from '../i18n'
import { bytes, count, duration, share } from '../ui/format'
import { Guesses } from './guesses'
import { isMissing, latest, watchStatus } from './history'
import { Keys } from './keys'
import { ModelCardView } from './model_card'
import { Plots } from './plots'
import { Requests } from './requests'
import { Sleep } from './sleep'

export function StatusScreen() {
  useEffect(watchStatus, [])
  const status = latest.value
  return (
    <main id="content" class="status" tabIndex={0} aria-label={t('status')}>
      <h1>{t('status')}</h1>
      {!status && isMissing.value && <p>{t('noStatus')}</p>}
      {status && (
        <>
          <p class="hint">
            {t('version', { version: status.version })} · {t('uptime', { time: duration(status.uptime_seconds) })} ·{' '}
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
          </p>
          <Sleep status={status} />
          <Requests />
          <Keys />
          <Plots />
          {!!status.speculation?.sources?.length && (
            <Guesses speculation={status.speculation} sources={status.speculation.sources} />
          )}
          <ModelCardView model={status.model} />
        </>
      )}
    </main>
  )
}
