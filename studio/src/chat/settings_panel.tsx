// settings_panel.tsx  The model, how it samples and thinks, its tools; the look of the page; export.
import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { ModelEntry } from '../api/types'
import { languageNames, t } from '../i18n'
import { loadModels } from '../store/connection'
import { conversations, openConversation, openSystem, removeAll, setOpenSystem } from '../store/conversations'
import { chatModel, contextLength, requestedModel } from '../store/model'
import { parseTools } from '../store/request'
import { clearServerCache, loadServerCache, serverCache } from '../store/server_cache'
import { chatModels } from '../store/session'
import { eraseOnServer, phase, room, stopSync, type SyncPhase } from '../store/sync'
import { change, settings, THINKING_MODES, type Sampling, type Settings, type ThinkingMode } from '../store/settings'
import { download, fileName, toJson, toMarkdown, toMarkdownFile } from '../store/transfer'
import { confirmThen } from '../ui/dialog'
import { bytes, count } from '../ui/format'
import { Cross } from '../ui/icons'
import { AdapterPicker, MemoryPicker } from './memory_pickers'
import { OdoPicker } from './odo_picker'
import { Presets } from './presets'
import { Prompts } from './prompts'

export const isPanelOpen = signal(false)

// Where the panel lies over the screen, whoever goes to another one wants to see it.
const liesOver = matchMedia('(max-width: 60rem)')
export function uncoverScreen() {
  if (liesOver.matches) isPanelOpen.value = false
}

interface Field {
  key: keyof Sampling
  label:
    | 'samplingTemperature'
    | 'samplingTopP'
    | 'samplingTopK'
    | 'samplingMinP'
    | 'samplingFrequency'
    | 'samplingRepetition'
    | 'samplingMaxTokens'
    | 'samplingThinkingBudget'
    | 'samplingSeed'
  min: number
  max?: number
  step: number
}

const FIELDS: Field[] = [
  { key: 'temperature', label: 'samplingTemperature', min: 0, max: 2, step: 0.05 },
  { key: 'top_p', label: 'samplingTopP', min: 0, max: 1, step: 0.01 },
  { key: 'top_k', label: 'samplingTopK', min: 0, step: 1 },
  { key: 'min_p', label: 'samplingMinP', min: 0, max: 1, step: 0.01 },
  { key: 'presence_penalty', label: 'samplingFrequency', min: -2, max: 2, step: 0.1 },
  { key: 'repetition_penalty', label: 'samplingRepetition', min: 0.01, max: 100, step: 0.01 },
  { key: 'max_tokens', label: 'samplingMaxTokens', min: 1, step: 1 },
  { key: 'thinking_budget', label: 'samplingThinkingBudget', min: 0, step: 1 },
  { key: 'seed', label: 'samplingSeed', min: 0, step: 1 },
]

function setSampling(key: keyof Sampling, value: string) {
  const sampling = { ...settings.value.sampling }
  if (value === '' || !Number.isFinite(Number(value))) delete sampling[key]
  else sampling[key] = Number(value)
  change({ sampling })
}

function SamplingFields() {
  return (
    <fieldset class="grid">
      <legend>{t('samplingTitle')}</legend>
      {FIELDS.map(({ key, label, min, max, step }) => (
        <label key={key}>
          {t(label)}
          <input
            type="number"
            min={min}
            max={max}
            step={step}
            placeholder={t('samplingDefault')}
            value={settings.value.sampling[key] ?? ''}
            onInput={(event) => event.currentTarget.validity.valid && setSampling(key, event.currentTarget.value)}
          />
        </label>
      ))}
    </fieldset>
  )
}

function toolsProblem(): string | null {
  try {
    parseTools(settings.value.tools)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function ToolsField() {
  const problem = toolsProblem()
  return (
    <label>
      {t('tools')}
      <span class="hint">{t('toolsHint')}</span>
      <textarea
        class="mono"
        rows={4}
        spellcheck={false}
        value={settings.value.tools}
        aria-invalid={problem !== null}
        onInput={(event) => change({ tools: event.currentTarget.value })}
      />
      {problem && (
        <span class="problem" role="alert">
          {t('toolsWrong', { reason: problem })}
        </span>
      )}
    </label>
  )
}

const SystemField = () => (
  <label>
    {t('system')}
    <span class="hint">{t('systemHint')}</span>
    <textarea rows={3} value={openSystem()} onInput={(event) => setOpenSystem(event.currentTarget.value)} />
  </label>
)

function Choice<K extends 'theme' | 'language' | 'thinking' | 'thinkingMode' | 'heat' | 'model'>(props: {
  name: K
  label: string
  options: [Settings[K], string][]
  value?: Settings[K] // what holds where it is not what was chosen
}) {
  return (
    <label>
      {props.label}
      <select
        value={props.value ?? settings.value[props.name]}
        onChange={(event) => change({ [props.name]: event.currentTarget.value } as Partial<Settings>)}
      >
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

function deleteAll() {
  const hasCache = serverCache.value !== null
  const question = settings.value.keepOnServer ? 'clearAllSureServer' : hasCache ? 'clearAllSureCache' : 'clearAllSure'
  confirmThen(t(question, { n: conversations.value.length }), t('delete'), () => {
    removeAll()
    if (hasCache) void clearServerCache()
  })
}

const PHASES = {
  off: 'syncHint',
  working: 'syncWorking',
  done: 'syncDone',
  offline: 'syncOffline',
  none: 'syncNone',
  full: 'syncIsFull',
  failed: 'syncFailed',
} as const satisfies Record<SyncPhase, string>

function KeepOnServer() {
  const isOn = settings.value.keepOnServer
  const taken = room.value
  const size = { n: taken?.count ?? 0, size: bytes(taken?.bytes ?? 0), limit: bytes(taken?.limit ?? 0) }
  const turn = () => {
    if (!isOn) return change({ keepOnServer: true })
    const hasSome = taken !== null && taken.count > 0
    stopSync()
    if (hasSome) confirmThen(t('syncErase'), t('syncEraseYes'), () => void eraseOnServer(), { otherwise: t('syncEraseNo') })
  }
  return (
    <>
      <label class="check">
        <input type="checkbox" role="switch" checked={isOn} aria-describedby="sync-state" onChange={turn} />
        {t('syncSwitch')}
      </label>
      <p class="hint" id="sync-state" role="status">
        {t(PHASES[phase.value], size)}
      </p>
    </>
  )
}

function KeptWhere() {
  useEffect(() => void loadServerCache(), [])
  const cache = serverCache.value
  const memory = bytes(cache?.memory_bytes ?? 0)
  return (
    <fieldset class="kept">
      <legend>{t('kept')}</legend>
      <p class="hint">{t('keptHere')}</p>
      <KeepOnServer />
      {cache && (
        <>
          <p class="hint">
            {t('keptServer')}{' '}
            {cache.limit_bytes > 0
              ? t('keptOnDisk', { size: bytes(cache.bytes), limit: bytes(cache.limit_bytes), memory })
              : t('keptInMemory', { memory })}
            {cache.directory && <span class="mono"> {cache.directory}</span>}
          </p>
          <button type="button" onClick={() => void clearServerCache()}>
            {t('cacheClear')}
          </button>
        </>
      )}
    </fieldset>
  )
}

function ExportButtons() {
  const conversation = openConversation.value
  const all = conversations.value
  const { presets, prompts } = settings.value
  return (
    <div class="buttons wrap">
      {conversation && (
        <>
          <button
            type="button"
            onClick={() => download(`${fileName(conversation.title)}.json`, 'application/json', toJson([conversation]))}
          >
            {t('exportJson')}
          </button>
          <button
            type="button"
            onClick={() => download(`${fileName(conversation.title)}.md`, 'text/markdown', toMarkdown(conversation))}
          >
            {t('exportMarkdown')}
          </button>
        </>
      )}
      <button
        type="button"
        disabled={!all.length && !presets.length && !prompts.length}
        onClick={() => download('chimere-conversations.json', 'application/json', toJson(all, { presets, prompts }))}
      >
        {t('exportAll')}
      </button>
      <button
        type="button"
        disabled={!all.length}
        onClick={() => download('chimere-conversations.md', 'text/markdown', toMarkdownFile(all))}
      >
        {t('exportAllMarkdown')}
      </button>
      <button
        type="button"
        class="danger"
        disabled={!all.length}
        onClick={deleteAll}
      >
        {t('clearAll')}
      </button>
    </div>
  )
}

const STATES = { unloaded: 'modelUnloaded', loading: 'modelLoading', loaded: 'modelLoaded', failed: 'modelFailed' } as const

// The first of a list without states is what the server takes by itself.
const modelOption = ({ id, status }: ModelEntry, at: number): [string, string] =>
  status ? [id, `${id} · ${t(STATES[status.value])}`] : [at === 0 ? '' : id, id]

const DEPTHS = { off: 'thoughtOff', fast: 'thoughtFast', quality: 'thoughtQuality', ultra: 'thoughtUltra' } as const

export function SettingsPanel() {
  const heading = useRef<HTMLHeadingElement>(null)
  const isOpen = isPanelOpen.value
  useLayoutEffect(() => {
    if (isOpen) heading.current?.focus()
  }, [isOpen])
  useEffect(() => {
    if (isOpen) void loadModels()
  }, [isOpen])
  if (!isOpen) return null
  const models = chatModels.value
  const status = chatModel.value?.status // a long name in the list hides it
  return (
    <aside class="panel" aria-label={t('settings')} id="settings">
      <header>
        <h2 tabIndex={-1} ref={heading}>
          {t('settings')}
        </h2>
        <button type="button" class="quiet round" aria-label={t('close')} onClick={() => (isPanelOpen.value = false)}>
          <Cross />
        </button>
      </header>
      <Choice
        name="model"
        label={t('model')}
        value={requestedModel.value}
        options={models.length ? models.map(modelOption) : [['', '…']]}
      />
      {status?.error && <span class="problem">{status.error}</span>}
      {status && !status.error && status.value !== 'loaded' && <span class="hint">{t(STATES[status.value])}</span>}
      {contextLength.value && <span class="hint">{t('contextOf', { n: count(contextLength.value) })}</span>}
      <a class="hint" href="#/models">
        {t('guideLink')}
      </a>
      <Presets />
      <SystemField />
      <Choice
        name="thinking"
        label={t('thinking')}
        options={[
          ['auto', t('thinkingAuto')],
          ['on', t('thinkingOn')],
          ['off', t('thinkingOff')],
        ]}
      />
      <Choice
        name="thinkingMode"
        label={t('thoughtDepth')}
        options={[['', t('thoughtDepthServer')], ...THINKING_MODES.map((mode): [ThinkingMode, string] => [mode, t(DEPTHS[mode])])]}
      />
      <OdoPicker />
      <Choice
        name="heat"
        label={t('heat')}
        options={[
          ['off', t('heatOff')],
          ['on', t('heatOn')],
        ]}
      />
      <SamplingFields />
      <AdapterPicker />
      <MemoryPicker />
      <ToolsField />
      <Prompts />
      <Choice
        name="theme"
        label={t('theme')}
        options={[
          ['auto', t('themeAuto')],
          ['light', t('themeLight')],
          ['dark', t('themeDark')],
        ]}
      />
      <Choice
        name="language"
        label={t('language')}
        options={[['auto', t('languageAuto')], ...Object.entries(languageNames)]}
      />
      <KeptWhere />
      <ExportButtons />
      <p class="hint">{t('shortcuts')}</p>
    </aside>
  )
}
