// presets.tsx  Presets in the settings: choosing, saving and deleting them.
import { useState } from 'preact/hooks'
import { t } from '../i18n'
import { applyPreset, currentPreset, removePreset, savePreset } from '../store/library'
import { settings } from '../store/settings'
import { offer } from '../ui/notice'

export function Presets() {
  const [name, setName] = useState('')
  const { presets } = settings.value
  const current = currentPreset()
  const remove = () => {
    if (!current) return
    removePreset(current.name)
    offer(t('deleted', { title: current.name }), t('undo'), () => {
      applyPreset(current)
      savePreset(current.name)
    })
  }
  return (
    <fieldset class="library">
      <legend>{t('presets')}</legend>
      <p class="hint">{t('presetsHint')}</p>
      {presets.length > 0 && (
        <div class="line">
          <select
            aria-label={t('preset')}
            value={current?.name ?? ''}
            onChange={(event) => {
              const chosen = presets.find((preset) => preset.name === event.currentTarget.value)
              if (chosen) applyPreset(chosen)
            }}
          >
            <option value="" disabled>
              {t('presetNone')}
            </option>
            {presets.map((preset) => (
              <option key={preset.name} value={preset.name}>
                {preset.name}
              </option>
            ))}
          </select>
          <button type="button" class="quiet small" disabled={!current} onClick={remove}>
            {t('delete')}
          </button>
        </div>
      )}
      <form
        class="line"
        onSubmit={(event) => {
          event.preventDefault()
          savePreset(name.trim())
          setName('')
        }}
      >
        <input
          aria-label={t('presetName')}
          placeholder={t('presetName')}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <button type="submit" class="small" disabled={!name.trim()}>
          {t('presetSave')}
        </button>
      </form>
    </fieldset>
  )
}
