// connection.ts  Notices that the server has gone and that it is back, without anybody pressing a key.
import { effect } from '@preact/signals'
import * as api from '../api/client'
import { t } from '../i18n'
import { notify } from '../ui/notice'
import { loadCollections } from './collections'
import { loadLearning } from './learning'
import { loadMemory } from './memory'
import { loadOdo } from './odo'
import { isOnline, modelList, reconnects } from './session'

const IDLE_MS = 10_000
const WAITING_MS = 1_000

export async function loadModels() {
  try {
    modelList.value = await api.models()
    await Promise.all([loadMemory().then(loadLearning), loadOdo(), loadCollections()])
  } catch {
    // Offline shows itself; without a key there is no list.
  }
}

async function watch() {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, isOnline.value ? IDLE_MS : WAITING_MS))
    if (!document.hidden) await api.health().catch(() => undefined)
  }
}

export function startConnection() {
  void loadModels()
  void watch()
  let seen = reconnects.value
  effect(() => {
    if (reconnects.value === seen) return
    seen = reconnects.value
    notify(t('connectionBack'))
    void loadModels()
  })
}
