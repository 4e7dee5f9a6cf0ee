// sleep.tsx  The card, given to other programs for a while.
import { useState } from 'preact/hooks'
import * as api from '../api/client'
import type { Status } from '../api/types'
import { t } from '../i18n'

export function Sleep({ status }: { status: Status }) {
  const [isBusy, setIsBusy] = useState(false)
  const [problem, setProblem] = useState('')
  if (status.model.backend !== 'cuda') return null
  const act = async (call: () => Promise<unknown>) => {
    setIsBusy(true)
    setProblem('')
    try {
      await call()
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
    }
    setIsBusy(false)
  }
  return (
    <section class="sleep" aria-label={t('sleep')}>
      <p role="status">{problem || t(status.is_sleeping ? 'sleepOn' : 'sleepOff')}</p>
      <button
        type="button"
        class="quiet"
        disabled={isBusy}
        onClick={() => act(status.is_sleeping ? api.wakeUp : api.sleep)}
      >
        {t(status.is_sleeping ? 'wakeUp' : 'sleep')}
      </button>
    </section>
  )
}
