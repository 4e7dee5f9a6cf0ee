// screen.tsx  The orchestrator: its routes and tools, what is wrong with its files, and what it did last.
import { useEffect, useState } from 'preact/hooks'
import type { McpServer, OdoRoute, OdoTool } from '../api/types'
import { runSummary, StepList } from '../chat/run_trace'
import { language, t } from '../i18n'
import { loadOdoScreen, odo, odoTools, traces } from '../store/odo'
import type { Trace } from '../store/run'
import { count } from '../ui/format'

const Names = ({ label, names = [] }: { label: string; names?: string[] | undefined }) =>
  names.length > 0 ? (
    <>
      <dt>{label}</dt>
      <dd>{names.join(', ')}</dd>
    </>
  ) : null

function Problems() {
  const problems = Object.entries(odo.value?.problems ?? {})
  if (!problems.length) return null
  return (
    <section class="problems" aria-labelledby="odo-problems">
      <h2 id="odo-problems">{t('odoProblems')}</h2>
      <p>{t('odoProblemsHint')}</p>
      <ul>
        {problems.map(([file, text]) => (
          <li key={file}>
            {text.startsWith(file) ? text : `${file}: ${text}`}
          </li>
        ))}
      </ul>
    </section>
  )
}

const RouteEntry = ({ id, route }: { id: string; route: OdoRoute }) => (
  <li class="entry">
    <p class="head">
      <strong>{route.name}</strong> <span class="hint mono">{id}</span>
    </p>
    <dl>
      <Names label={t('odoTools')} names={route.tools} />
      <Names label={t('odoCued')} names={route.tools_on_cue} />
      <Names label={t('odoSteps')} names={route.steps} />
      <Names label={t('odoLooksIn')} names={[...(route.collections ?? []), ...(route.web ? [t('odoWeb')] : [])]} />
      <Names label={t('odoTables')} names={route.engram} />
      <Names label={t('adapters')} names={route.lora ? [route.lora] : []} />
      <Names
        label={t('thinking')}
        names={typeof route.thinking === 'boolean' ? [t(route.thinking ? 'thinkingOn' : 'thinkingOff')] : []}
      />
    </dl>
  </li>
)

const POLICIES = { allow: 'policyAllow', ask: 'policyAsk', deny: 'policyDeny' } as const

const ToolEntry = ({ tool }: { tool: OdoTool }) => (
  <li class="entry">
    <p class="head">
      <strong class="mono">{tool.name}</strong>{' '}
      <span class="badge" data-policy={tool.policy}>
        {t(POLICIES[tool.policy] ?? 'policyAsk')}
      </span>
    </p>
    <p class="description">{tool.description}</p>
  </li>
)

const McpEntry = ({ server }: { server: McpServer }) => (
  <li class="entry" data-state={server.state}>
    <p class="head">
      <strong class="mono">{server.name}</strong> <span class="badge">{t(server.state === 'running' ? 'mcpRunning' : 'mcpFailed')}</span>
    </p>
    {server.problem && <p class={server.state === 'running' ? 'description' : 'problem'}>{server.problem}</p>}
    <dl>
      <Names label={t('mcpServer')} names={server.server ? [server.server] : []} />
      <Names label={t('mcpPolicy')} names={[t(POLICIES[server.policy] ?? 'policyAsk')]} />
      <Names label={t('odoTools')} names={server.tools} />
    </dl>
  </li>
)

function McpServers({ list }: { list: McpServer[] }) {
  return (
    <>
      <h2>{t('mcpServers')}</h2>
      {list.length === 0 && <p class="none">{t('mcpNone')}</p>}
      <ul>
        {list.map((server) => (
          <McpEntry key={server.name} server={server} />
        ))}
      </ul>
    </>
  )
}

const CLOCK = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const

function RunEntry({ trace }: { trace: Trace }) {
  const [isOpen, setIsOpen] = useState(false)
  const at = new Date(trace.created * 1000).toLocaleTimeString(language.value, CLOCK)
  const isFailed = !['stop', 'length', 'tool_calls', 'cancelled', 'loop'].includes(trace.finish)
  return (
    <li>
      <details class="run" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
        <summary>
          {at} · {runSummary(trace, false)}
          {trace.tokens > 0 && ` · ${t('tokens', { n: count(trace.tokens) })}`}
          {isFailed && <span class="problem"> {trace.finish}</span>}
        </summary>
        {isOpen && <StepList steps={trace.steps} />}
      </details>
    </li>
  )
}

export function OdoScreen() {
  const status = odo.value
  useEffect(() => void loadOdoScreen(), [])
  return (
    <main id="content" class="odo" tabIndex={-1} aria-label={t('odo')} lang={language.value}>
      <h1>{t('odo')}</h1>
      {!status ? (
        <p>{status === null ? t('odoNone') : ''}</p>
      ) : (
        <>
          <p class="hint">{t('odoScreenHint')}</p>
          <Problems />
          <h2>{t('odoRoutes')}</h2>
          <ul>
            {Object.entries(status.routes).map(([id, route]) => (
              <RouteEntry key={id} id={id} route={route} />
            ))}
          </ul>
          <h2>{t('odoTools')}</h2>
          {odoTools.value.length === 0 && <p class="none">{t('odoNoTools')}</p>}
          <ul>
            {odoTools.value.map((tool) => (
              <ToolEntry key={tool.name} tool={tool} />
            ))}
          </ul>
          <McpServers list={status.mcp_servers ?? []} />
          <h2>{t('odoRuns')}</h2>
          {traces.value.length === 0 && <p class="none">{t('odoNoRuns')}</p>}
          <ul class="runs">
            {traces.value.map((trace) => (
              <RunEntry key={trace.id} trace={trace} />
            ))}
          </ul>
          <div class="buttons">
            <button type="button" onClick={() => void loadOdoScreen()}>
              {t('odoAgain')}
            </button>
          </div>
        </>
      )}
    </main>
  )
}
