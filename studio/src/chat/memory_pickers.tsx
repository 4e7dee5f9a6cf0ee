// memory_pickers.tsx  What is used beside the model: LoRA adapters, tables, passages, notes. Shown where the server has any.
import { t } from '../i18n'
import { adapters, canLearn, hasMemory, memory } from '../store/memory'
import { change, settings, type EngramChoice } from '../store/settings'

function choose(name: string, scale: number | null) {
  const { [name]: _, ...others } = settings.value.lora
  change({ lora: scale === null ? others : { ...others, [name]: scale } })
}

export function AdapterPicker() {
  if (!adapters.value.length) return null
  return (
    <fieldset class="library">
      <legend>{t('adapters')}</legend>
      {adapters.value.map(({ name, scale }) => {
        const chosen = settings.value.lora[name]
        return (
          <div key={name} class="line">
            <label class="check">
              <input
                type="checkbox"
                checked={chosen !== undefined}
                onChange={(event) => choose(name, event.currentTarget.checked ? scale : null)}
              />
              {name}
            </label>
            <input
              class="scale"
              type="number"
              step={0.1}
              min={-100}
              max={100}
              aria-label={t('adapterScale', { name })}
              disabled={chosen === undefined}
              value={chosen ?? scale}
              onInput={(event) => event.currentTarget.validity.valid && choose(name, event.currentTarget.valueAsNumber)}
            />
          </div>
        )
      })}
    </fieldset>
  )
}

export function MemoryPicker() {
  if (!hasMemory.value) return null
  const { tables, passages } = memory.value!
  const chosen = settings.value.engram
  const set = (part: Partial<EngramChoice>) => change({ engram: { ...chosen, ...part } })
  return (
    <fieldset class="library">
      <legend>{t('memoryScreen')}</legend>
      {tables.map(({ name }) => (
        <label key={name} class="check">
          <input
            type="checkbox"
            checked={chosen.tables.includes(name)}
            onChange={(event) => {
              const others = chosen.tables.filter((table) => table !== name)
              set({ tables: event.currentTarget.checked ? [...others, name] : others })
            }}
          />
          {t('memoryTable', { name })}
        </label>
      ))}
      {passages.length > 0 && (
        <label>
          {t('memoryPassages')}
          <select value={chosen.passages} onChange={(event) => set({ passages: event.currentTarget.value })}>
            <option value="">{t('memoryPassagesNone')}</option>
            {passages.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {canLearn.value && (
        <label class="check">
          <input type="checkbox" checked={chosen.notes} onChange={(event) => set({ notes: event.currentTarget.checked })} />
          {t('memoryUse')}
        </label>
      )}
    </fieldset>
  )
}
