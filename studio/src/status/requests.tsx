// requests.tsx  The requests that run or wait, each with a button that ends it.
import * as api from '../api/client'
import type { RunningRequest } from '../api/types'
import { t } from '../i18n'
import { count, duration } from '../ui/format'
import { notify } from '../ui/notice'
import { refresh, runningRequests } from './history'

const STATES = { loading: 'stateLoading', queued: 'stateQueued', prefill: 'statePrefill', decode: 'stateDecode' } as const

async function cancel(id: string) {
  try {
    await api.cancel(id)
    notify(t('cancelled'))
  } catch (error) {
    // 404: it has ended meanwhile, and the list will say so.
    if (error instanceof api.ApiError && error.status !== 404) notify(error.message, 'error')
  }
  void refresh()
}

function Row({ request }: { request: RunningRequest }) {
  return (
    <tr>
      <td class="mono" title={request.id}>
        {request.id}
        {request.model && <small class="hint">{request.model}</small>}
      </td>
      <td>{request.thinking ? t('stateThinking') : t(STATES[request.state] ?? 'stateQueued')}</td>
      <td>
        {count(request.prompt_tokens)}
        {request.cached_tokens > 0 && ` (${count(request.cached_tokens)} ${t('cached')})`}
      </td>
      <td>{count(request.completion_tokens)}</td>
      <td>{duration(request.age_seconds)}</td>
      <td>
        <button
          type="button"
          class="small"
          aria-label={t('cancelRequest', { id: request.id })}
          onClick={() => void cancel(request.id)}
        >
          {t('cancel')}
        </button>
      </td>
    </tr>
  )
}

export function Requests() {
  const list = runningRequests.value
  return (
    <section class="requests" aria-labelledby="requests-title">
      <h2 id="requests-title">{t('requests')}</h2>
      {list.length === 0 ? (
        <p class="hint">{t('noRequests')}</p>
      ) : (
        <div class="table-scroller" tabIndex={0} role="region" aria-labelledby="requests-title">
          <table>
            <thead>
              <tr>
                <th scope="col">{t('reqId')}</th>
                <th scope="col">{t('reqState')}</th>
                <th scope="col">{t('reqPrompt')}</th>
                <th scope="col">{t('reqGenerated')}</th>
                <th scope="col">{t('reqAge')}</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {list.map((request) => (
                <Row key={request.id} request={request} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}
