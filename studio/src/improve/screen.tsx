// screen.tsx  What was learned from this user: in use since when, what was tried with its gain and cost, and the ways back.
import { useEffect } from 'preact/hooks'
import type { ImproveRun } from '../api/types'
import { language, t } from '../i18n'
import { forgetLearned, improve, loadImprove, promote, rollBack, startImproving } from '../store/improve'
import { settings } from '../store/settings'
import { confirmThen } from '../ui/dialog'
import { count, dayAndTime, duration } from '../ui/format'

const POLL_MS = 5_000

const STATES: Record<ImproveRun['state'], Parameters<typeof t>[0]> = {
  running: 'improveRunning',
  proven: 'improveProven',
  refused: 'improveRefused',
  skipped: 'improveSkipped',
  failed: 'improveFailed',
  stopped: 'improveStopped',
  done: 'improveDone',
}

const KINDS: Record<string, Parameters<typeof t>[0]> = {
  engram: 'improveKindTable',
  lora: 'improveKindAdapter',
  prompts: 'improveKindPrompt',
  scores: 'improveKindScores',
  closing: 'improveKindClosing',
  words: 'improveKindWords',
  examples: 'improveKindExamples',
  thinking: 'improveKindThinking',
}
const nameOf = (kind: string) => (KINDS[kind] ? t(KINDS[kind]) : kind)

function Clock() {
  const state = improve.value
  if (!state) return null
  return (
    <>
      {state.running && (
        <p class="hint">
          {state.running.paused ? t('improvePaused') : t('improveAtWork', { kind: state.running.kind ? nameOf(state.running.kind) : '…' })}
        </p>
      )}
      <ul>
        {Object.entries(state.schedule).map(([kind, { next }]) => (
          <li key={kind} class="row">
            <p>
              <strong>{nameOf(kind)}</strong> {next !== null && t('improveNext', { when: dayAndTime(next) })}
            </p>
            <div class="buttons">
              <button type="button" aria-label={t('improveNowFor', { kind: nameOf(kind) })} onClick={() => void startImproving(kind)}>
                {t('improveNow')}
              </button>
            </div>
          </li>
        ))}
      </ul>
    </>
  )
}

function InUse() {
  const list = improve.value?.in_use ?? []
  if (!list.length) return <p class="none">{t('improveNothing')}</p>
  return (
    <ul>
      {list.map(({ kind, versions }) => {
        const now = versions[versions.length - 1]
        return (
          <li key={kind} class="row">
            <p>
              <strong>{nameOf(kind)}</strong> {now && t('improveSince', { when: dayAndTime(now.since) })}{' '}
              <code>{now?.artefact.slice(0, 12)}</code>
            </p>
            <div class="buttons">
              <button
                type="button"
                onClick={() => confirmThen(t('improveBackSure', { kind: nameOf(kind) }), t('improveBack'), () => void rollBack(kind))}
              >
                {t('improveBack')}
              </button>
            </div>
          </li>
        )
      })}
    </ul>
  )
}

const inUse = (run: ImproveRun) =>
  improve.value?.in_use.some(({ versions }) => versions[versions.length - 1]?.run === run.id) ?? false

function Run({ run }: { run: ImproveRun }) {
  const { gain, reason } = run.verdict
  const digits = (value: number) => (value > 0 ? '+' : '') + value.toFixed(3)
  return (
    <li>
      <p>
        <strong>{nameOf(run.kind)}</strong> {t(STATES[run.state])} · {dayAndTime(run.created)}
        {run.state === 'running' && ` · ${count(run.progress.done)} / ${count(run.progress.total)}`}
      </p>
      {gain.n > 0 && (
        <p>
          {t(run.kind === 'thinking' ? 'improveGainThought' : 'improveGain', {
            mean: digits(gain.mean),
            low: digits(gain.low),
            high: digits(gain.high),
            n: count(gain.n),
          })}
        </p>
      )}
      <p class="hint">{run.problem || reason || run.about}</p>
      <p class="hint">
        {t('improveCost', { n: count(run.examples), time: duration(run.cost.cpu_seconds) })}
        {run.cost.joules !== null && ` · ${count(run.cost.joules)} J`}
      </p>
      {run.learned_from.length > 0 && (
        <details>
          <summary>{t('improveFrom', { n: run.learned_from.length })}</summary>
          <ul>
            {run.learned_from.map((name) => (
              <li key={name}>
                <code>{name}</code>{' '}
                <button
                  type="button"
                  class="quiet"
                  onClick={() => confirmThen(t('improveForgetSure'), t('improveForget'), () => void forgetLearned(name))}
                >
                  {t('improveForget')}
                </button>
              </li>
            ))}
          </ul>
        </details>
      )}
      {run.state === 'proven' && run.artefact && !inUse(run) && (
        <div class="buttons">
          <button type="button" onClick={() => void promote(run.id)}>
            {t('improveUse')}
          </button>
        </div>
      )}
    </li>
  )
}

export function ImproveScreen() {
  const { user } = settings.value
  useEffect(() => {
    void loadImprove()
    const timer = setInterval(() => void loadImprove(), POLL_MS)
    return () => clearInterval(timer)
  }, [user])
  const state = improve.value
  return (
    <main id="content" class="memory" tabIndex={-1} aria-label={t('improveTitle')} lang={language.value}>
      <h1>{t('improveTitle')}</h1>
      {!state ? (
        <p class="none">{t('improveOff')}</p>
      ) : (
        <>
          <p class="hint">{t('improveHint')}</p>
          <h2>{t('improveInUse')}</h2>
          <InUse />
          <h2>{t('improvePlanned')}</h2>
          <Clock />
          <h2>{t('improveTried')}</h2>
          {state.runs.length === 0 && <p class="none">{t('improveNoRuns')}</p>}
          <ul>
            {state.runs.map((run) => (
              <Run key={run.id} run={run} />
            ))}
          </ul>
          {(state.runs.length > 0 || state.in_use.length > 0) && (
            <div class="buttons">
              <button
                type="button"
                class="danger"
                onClick={() => confirmThen(t('improveForgetAllSure'), t('improveForgetAll'), () => void forgetLearned())}
              >
                {t('improveForgetAll')}
              </button>
            </div>
          )}
        </>
      )}
    </main>
  )
}
