// odo_sources.tsx  What the orchestrator may use for this conversation: collections to read, the web, tools. What was chosen
// stands above the message as chips; a button opens the choices. Shown where the orchestrator answers.
import { useRef, useState } from 'preact/hooks'
import { t } from '../i18n'
import { collections } from '../store/collections'
import { MOST_NAMED, odo, odoTools, openOdo, setOpenOdo, usable, type OdoChoice } from '../store/odo'
import { count } from '../ui/format'
import { Cross, Fork } from '../ui/icons'
import { filesAddress } from '../ui/route'

const change = (part: Partial<OdoChoice>) => setOpenOdo({ mode: '', route: '', ...openOdo(), ...part })

interface Chip {
  text: string
  drop: Partial<OdoChoice> // what is left without it
}

function chipsOf({ collections: names, web, tools }: OdoChoice): Chip[] {
  const without = (name: string) => names!.filter((other) => other !== name)
  const read = names?.map((name) => ({ text: name, drop: { collections: without(name).length ? without(name) : undefined } }))
  return [
    ...(read?.length === 0 ? [{ text: t('odoNoCollections'), drop: { collections: undefined } }] : (read ?? [])),
    ...(web === undefined ? [] : [{ text: t(web ? 'odoWithWeb' : 'odoNoWeb'), drop: { web: undefined } }]),
    ...(tools ? [{ text: toolsWord(tools.length), drop: { tools: undefined } }] : []),
  ]
}

const toolsWord = (n: number) => (n === 0 ? t('odoWithoutTools') : n === 1 ? t('odoOneTool') : t('odoToolCount', { n: count(n) }))

function Chips({ list, onGone }: { list: Chip[]; onGone: () => void }) {
  if (!list.length) return null
  return (
    <ul class="files" aria-label={t('odoUses')}>
      {list.map(({ text, drop }) => (
        <li key={text}>
          {text}
          <button
            type="button"
            class="quiet"
            aria-label={t('removeFile', { name: text })}
            onClick={() => {
              onGone() // the button goes away
              change(drop)
            }}
          >
            <Cross />
          </button>
        </li>
      ))}
    </ul>
  )
}

interface NamesProps {
  label: string
  all: string[]
  chosen: string[] | undefined
  none: string
  onChoose: (names: string[] | undefined) => void
}

// As the route says, none, or those that are ticked.
function NamesPicker({ label, all, chosen, none, onChoose }: NamesProps) {
  const value = !chosen ? 'auto' : chosen.length ? 'these' : 'none'
  const choose = (kind: string) => onChoose(kind === 'auto' ? undefined : kind === 'none' ? [] : all.slice(0, MOST_NAMED))
  return (
    <div class="choice">
      <label>
        {label}
        <select value={value} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="auto">{t('odoAsRoute')}</option>
          <option value="none">{none}</option>
          {all.length > 0 && <option value="these">{t('odoThese')}</option>}
        </select>
      </label>
      {chosen && chosen.length > 0 && (
        <div class="ticks" role="group" aria-label={label}>
          {all.map((name) => (
            <label key={name} class="check">
              <input
                type="checkbox"
                checked={chosen.includes(name)}
                disabled={!chosen.includes(name) && chosen.length >= MOST_NAMED}
                onChange={(event) => {
                  const others = chosen.filter((other) => other !== name)
                  onChoose(event.currentTarget.checked ? [...others, name] : others)
                }}
              />
              {name}
            </label>
          ))}
        </div>
      )}
    </div>
  )
}

const WEB: Record<string, boolean | undefined> = { auto: undefined, yes: true, no: false }

function WebPicker({ web }: { web: boolean | undefined }) {
  const canSearch = odo.value?.web === true
  return (
    <div class="choice">
      <label>
        {t('odoWebSearch')}
        <select
          value={web === undefined ? 'auto' : web ? 'yes' : 'no'}
          disabled={!canSearch}
          aria-describedby={canSearch ? undefined : 'odo-web-hint'}
          onChange={(event) => change({ web: WEB[event.currentTarget.value] })}
        >
          <option value="auto">{canSearch ? t('odoAsRoute') : t('odoNoWeb')}</option>
          {canSearch && <option value="yes">{t('odoWithWeb')}</option>}
          {canSearch && <option value="no">{t('odoNoWeb')}</option>}
        </select>
      </label>
      {!canSearch && (
        <p class="hint" id="odo-web-hint">
          {t('odoWebHow')} <code>serve --searxng URL</code>
        </p>
      )}
    </div>
  )
}

function Choices({ choice }: { choice: OdoChoice }) {
  const names = collections.value?.data.map((one) => one.name) ?? []
  const tools = odoTools.value.filter((tool) => tool.policy !== 'deny').map((tool) => tool.name)
  return (
    <div class="choices" id="odo-choices" role="group" aria-label={t('odoUses')}>
      <div class="choice">
        <NamesPicker
          label={t('collections')}
          all={names}
          chosen={choice.collections}
          none={t('odoNoCollections')}
          onChoose={(list) => change({ collections: list })}
        />
        {collections.value && (
          <p class="hint">
            <a href={filesAddress()}>{t(names.length ? 'odoToFiles' : 'odoMakeCollection')}</a>
          </p>
        )}
      </div>
      <WebPicker web={choice.web} />
      <NamesPicker
        label={t('odoTools')}
        all={tools}
        chosen={choice.tools}
        none={t('odoWithoutTools')}
        onChoose={(list) => change({ tools: list })}
      />
    </div>
  )
}

export function OdoSources() {
  const [isOpen, setIsOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const chosen = openOdo()
  if (!odo.value || !chosen) return null
  const choice = usable(chosen)
  return (
    <div
      class="odo-sources"
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isOpen) return
        event.preventDefault()
        setIsOpen(false)
        button.current?.focus()
      }}
    >
      {isOpen && <Choices choice={choice} />}
      <div class="chips">
        <button
          type="button"
          class="quiet small"
          ref={button}
          aria-expanded={isOpen}
          aria-controls={isOpen ? 'odo-choices' : undefined}
          onClick={() => setIsOpen(!isOpen)}
        >
          <Fork /> {t('odoUses')}
        </button>
        <Chips list={chipsOf(choice)} onGone={() => button.current?.focus()} />
      </div>
    </div>
  )
}
