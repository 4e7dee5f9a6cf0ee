// server_cache.ts  What the server keeps of prompts: computed states, and with them the tokens of the text.
import { signal } from '@preact/signals'
import * as api from '../api/client'
import type { Cache } from '../api/types'
import { t } from '../i18n'
import { bytes } from '../ui/format'
import { notify } from '../ui/notice'

// Null: not asked yet, or a server that does not tell.
export const serverCache = signal<Cache | null>(null)

export async function loadServerCache() {
  try {
    serverCache.value = await api.cache()
  } catch (error) {
    if (error instanceof api.ApiError) serverCache.value = null
  }
}

export async function clearServerCache() {
  try {
    const { cleared_bytes: cleared } = await api.clearCache()
    notify(t('cacheCleared', { size: bytes(cleared) }))
  } catch (error) {
    const reason = error instanceof api.ApiError ? error.message : t('connectionLostShort')
    notify(t('cacheNotCleared', { reason }), 'error')
  }
  await loadServerCache()
}
