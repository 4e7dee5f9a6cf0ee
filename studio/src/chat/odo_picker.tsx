// odo_picker.tsx  Who answers this conversation: the model alone or the orchestrator, with its mode and route. Shown where
// the server has one.
import { t } from '../i18n'
import { odo, openOdo, setOpenOdo, type OdoChoice } from '../store/odo'

interface Props {
  label: string
  value: string
  options: [value: string, text: string][]
  onChoose: (value: string) => void
}

const Picker = ({ label, value, options, onChoose }: Props) => (
  <label>
    {label}
    <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
      {options.map(([name, text]) => (
        <option key={name} value={name}>
          {text}
        </option>
      ))}
    </select>
  </label>
)

const MODES: Record<string, 'odoFast' | 'odoQuality' | 'odoUltra'> = {
  fast: 'odoFast',
  quality: 'odoQuality',
  ultra: 'odoUltra',
}
export const modeWord = (mode: string) => (MODES[mode] ? t(MODES[mode]) : mode)

export function OdoPicker() {
  const status = odo.value
  if (!status) return null
  const chosen = openOdo()
  const set = (part: Partial<OdoChoice>) => setOpenOdo({ mode: '', route: '', ...chosen, ...part })
  const routes = Object.entries(status.routes)
  return (
    <fieldset class="library">
      <legend>{t('odo')}</legend>
      <Picker
        label={t('odoAnswers')}
        value={chosen ? 'odo' : ''}
        options={[
          ['', t('odoOff')],
          ['odo', t('odoOn')],
        ]}
        onChoose={(value) => (value ? set({}) : setOpenOdo(null))}
      />
      <span class="hint">{t(chosen ? 'odoHint' : 'systemHint')}</span>
      {chosen && (
        <>
          <Picker
            label={t('odoMode')}
            value={chosen.mode}
            options={[['', t('odoAuto')], ...(status.modes ?? []).map((mode): [string, string] => [mode, modeWord(mode)])]}
            onChoose={(mode) => set({ mode })}
          />
          <Picker
            label={t('odoRoute')}
            value={chosen.route in status.routes ? chosen.route : ''}
            options={[['', t('odoAuto')], ...routes.map(([id, { name }]): [string, string] => [id, `${id} · ${name}`])]}
            onChoose={(route) => set({ route })}
          />
        </>
      )}
    </fieldset>
  )
}
