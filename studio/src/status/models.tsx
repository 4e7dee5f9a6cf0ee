// models.tsx  The models of a folder: which are loaded and what they take, with a button that loads or unloads each.
import { useState } from 'preact/hooks'
import * as api from '../api/client'
import type { FolderModel } from '../api/types'
import { t } from '../i18n'
import { loadModels } from '../store/connection'
import { bytes, count } from '../ui/format'
import { notify } from '../ui/notice'
import { refresh } from './history'

const STATES = { unloaded: 'modelUnloaded', loading: 'modelLoading', loaded: 'modelLoaded', failed: 'modelFailed' } as const

function State({ of: { name, state, progress = 0, error, users = 0 } }: { of: FolderModel }) {
  if (state === 'loading') {
    const text = t('modelLoads', { name, n: count(progress * 100) })
    return (
      <>
        <progress max={1} value={progress} aria-label={text} /> {t('modelLoading')}, {count(progress * 100)} %
      </>
    )
  }
  if (state === 'failed') return <span class="problem">{error ?? t('modelFailed')}</span>
  return (
    <>
      {t(STATES[state])}
      {users > 0 && ` · ${t('modelAnswers', { n: count(users) })}`}
    </>
  )
}

// Those that the model has of its own: `model-options` of chimere.yaml.
function Options({ of: { options, has_new_options } }: { of: FolderModel }) {
  if (!options && !has_new_options) return null
  const list = Object.entries(options ?? {}).map(([name, value]) => `${name} ${value}`)
  if (has_new_options) list.push(t('modelNewOptions'))
  return <small class="hint">{list.join(' · ')}</small>
}

function Row({ of: model }: { of: FolderModel }) {
  const [isAsked, setIsAsked] = useState(false)
  const { name, state, file_bytes, ram_bytes = 0, vram_bytes = 0 } = model
  const isLoaded = state === 'loaded'
  const isBusy = isAsked || state === 'loading'
  const act = async () => {
    setIsAsked(true)
    try {
      await (isLoaded ? api.unloadModel : api.loadModel)(name)
    } catch (error) {
      if (error instanceof api.ApiError) notify(error.message, 'error')
    }
    await refresh()
    setIsAsked(false)
    void loadModels()
  }
  return (
    <tr>
      <th scope="row">
        {name}
        <Options of={model} />
      </th>
      <td>
        <button
          type="button"
          class="small"
          aria-disabled={isBusy}
          aria-label={t(isLoaded ? 'modelUnloadName' : 'modelLoadName', { name })}
          onClick={() => isBusy || void act()}
        >
          {t(isLoaded ? 'modelUnload' : 'modelLoad')}
        </button>
      </td>
      <td class="state">
        <State of={model} />
      </td>
      <td>{bytes(file_bytes)}</td>
      <td>
        {isLoaded && bytes(ram_bytes)}
        {isLoaded && vram_bytes > 0 && ` + ${t('modelOnCard', { size: bytes(vram_bytes) })}`}
      </td>
    </tr>
  )
}

export function Models({ list }: { list: FolderModel[] }) {
  if (!list.length) return null
  return (
    <section class="requests" aria-labelledby="models-title">
      <h2 id="models-title">{t('modelsTitle')}</h2>
      <div class="table-scroller" tabIndex={0} role="region" aria-labelledby="models-title">
        <table>
          <thead>
            <tr>
              <th scope="col">{t('model')}</th>
              <td />
              <th scope="col">{t('reqState')}</th>
              <th scope="col">{t('modelFile')}</th>
              <th scope="col">{t('modelMemory')}</th>
            </tr>
          </thead>
          <tbody>
            {list.map((model) => (
              <Row key={model.name} of={model} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
