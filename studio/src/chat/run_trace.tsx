// run_trace.tsx  What the orchestrator did for an answer: a quiet line that opens to its steps. Whatever a step says is text.
import { t } from '../i18n'
import type { Branch, Run, Step, StepState } from '../store/run'
import { count, milliseconds } from '../ui/format'
import { CallArguments } from './call_arguments'
import { modeWord } from './odo_picker'

const STAGES: Record<
  string,
  | 'stageRoute'
  | 'stageRetrieve'
  | 'stageWeb'
  | 'stageCalculate'
  | 'stageAnswer'
  | 'stageSearch'
  | 'stageGate'
  | 'stageFewShot'
> = {
  route: 'stageRoute',
  retrieve: 'stageRetrieve',
  web: 'stageWeb',
  calculate: 'stageCalculate',
  answer: 'stageAnswer',
  search: 'stageSearch',
  gate: 'stageGate',
  few_shot: 'stageFewShot',
}

// A step that has just begun has nothing but the name of its tool.
const toolOf = ({ stage, about, detail }: Step) => detail?.tool || (stage === 'tool' ? about : '')

function stageWords(step: Step): string {
  const tool = toolOf(step)
  if (tool) return t('stageTool', { tool })
  const known = STAGES[step.stage]
  return known ? t(known) : t('stageOther', { stage: step.stage })
}

// The server begins with the name of the tool, which stands before it already.
function aboutOf(step: Step): string {
  const tool = toolOf(step)
  const { about } = step
  return tool && (about === tool || about.startsWith(`${tool}: `)) ? about.slice(tool.length + 2) : about
}

// `stopped`: it ran when the answer was ended.
type ShownState = StepState | 'stopped'
const WORDS = {
  running: 'stepRunning',
  asks: 'stepAsks',
  failed: 'stepFailed',
  skipped: 'stepSkipped',
  stopped: 'stepStopped',
} as const
const SIGNS: Record<ShownState, string> = { running: '', asks: '?', done: '✓', failed: '✕', skipped: '–', stopped: '–' }

const percent = (score: number) => `${Math.round(score * 100)} %`

// What a search tried, each way with its score; its steps are a click away.
const BranchList = ({ branches }: { branches: Branch[] }) => (
  <ol class="ways">
    {branches.map((branch, i) => (
      <li key={i} data-chosen={branch.isChosen}>
        <p class="head">
          <strong>{t('branch', { n: i + 1 })}</strong>
          {branch.score !== null && <span>{percent(branch.score)}</span>}
          {branch.isChosen && <span class="badge">{t('branchChosen')}</span>}
          {branch.why && <span class="hint">{branch.why}</span>}
        </p>
        {branch.text && <p class="about">{branch.text}</p>}
        {branch.steps.length > 0 && (
          <details>
            <summary>{t('branchSteps', { n: count(branch.steps.length) })}</summary>
            <ol>
              {branch.steps.map((step, k) => (
                <li key={k}>
                  {step.text} <span class="hint">{percent(step.score)}</span>
                </li>
              ))}
            </ol>
          </details>
        )}
      </li>
    ))}
  </ol>
)

function StepEntry({ step, isGrowing }: { step: Step; isGrowing: boolean }) {
  const { detail } = step
  const isOpen = step.state === 'running' || step.state === 'asks'
  const state: ShownState = isOpen && !isGrowing ? 'stopped' : step.state
  const isAsking = state === 'asks' // in a card of its own
  const about = isAsking ? '' : aboutOf(step)
  const cost = [
    !isOpen && milliseconds(step.ms),
    step.tokens > 0 && t('tokens', { n: count(step.tokens) }),
  ].filter((part) => part)
  return (
    <li data-state={state}>
      <span class="sign" aria-hidden="true">
        {SIGNS[state]}
      </span>
      <div class="step">
        <p class="head">
          <strong>{stageWords(step)}</strong>
          {state !== 'done' && <span class="state">{t(WORDS[state])}</span>}
          <span class="hint">{cost.join(' · ')}</span>
        </p>
        {about && <p class="about">{about}</p>}
        {detail?.branches && <BranchList branches={detail.branches} />}
        {detail?.tool && detail.arguments && !isAsking && <CallArguments json={detail.arguments} />}
        {detail?.result !== undefined && (
          <>
            <p class="hint">
              {t('toolResult')}
              {detail.is_untrusted && <span class="badge">{t('stepOutside')}</span>}
            </p>
            <pre tabIndex={0}>{detail.result}</pre>
          </>
        )}
      </div>
    </li>
  )
}

export const StepList = ({ steps, isGrowing = false }: { steps: Step[]; isGrowing?: boolean }) => (
  <ol class="steps">
    {steps.map((step) => (
      <StepEntry key={step.index} step={step} isGrowing={isGrowing} />
    ))}
  </ol>
)

// "Route code · 3 steps · 1.2 s", with what is being done now in the place of the time.
export function runSummary({ route, mode, steps, ms }: Run, isGrowing: boolean): string {
  const current = isGrowing && steps.findLast((step) => step.state === 'running' || step.state === 'asks')
  const n = steps.length
  return [
    route && t('runRoute', { route }),
    mode && modeWord(mode),
    n === 1 ? t('runStep') : t('runSteps', { n: count(n) }),
    current ? stageWords(current) : milliseconds(ms),
  ]
    .filter((part) => part)
    .join(' · ')
}

export const RunTrace = ({ run, isGrowing }: { run: Run; isGrowing: boolean }) => (
  <details class="run">
    <summary>
      {isGrowing && <span class="dots" aria-hidden="true" />}
      {runSummary(run, isGrowing)}
    </summary>
    <StepList steps={run.steps} isGrowing={isGrowing} />
  </details>
)
