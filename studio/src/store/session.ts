// session.ts  What lives as long as the tab: the key, whether the server answers, which models it has. The key of a
// browser that was let in by a code (pairing.ts) lives longer.
import { computed, signal } from '@preact/signals'
import type { ModelEntry } from '../api/types'

export const isOnline = signal(true)
// Bumped when the server answers again after it did not, so that what was loaded from it is loaded again.
export const reconnects = signal(0)
export const modelList = signal<ModelEntry[]>([])
// Those that answer messages, each under its own name. A server that does not say is believed to have no others.
export const chatModels = computed(() =>
  modelList.value.filter((m) => !m.parent && (m.capabilities?.includes('chat') ?? true)),
)

export function markOnline() {
  if (isOnline.value) return
  isOnline.value = true
  reconnects.value++
}

export function markOffline() {
  isOnline.value = false
}

const KEY = 'chimere.key'
const PAIRED = 'chimere.browser-key'
let key = sessionStorage.getItem(KEY) ?? localStorage.getItem(PAIRED)

export const apiKey = () => key

// Only if it is still the one that was refused: another request may have asked for a new one meanwhile.
export function forgetKey(refused: string | null) {
  if (key !== refused) return
  key = null
  sessionStorage.removeItem(KEY)
  if (localStorage.getItem(PAIRED) === refused) localStorage.removeItem(PAIRED)
}

// A key that is this browser's own, not only this tab's.
export function keepKey(given: string) {
  key = given
  sessionStorage.removeItem(KEY)
  localStorage.setItem(PAIRED, given)
  keyQuestion.value?.answer(given)
}

export interface KeyQuestion {
  wasRefused: boolean
  answer: (key: string | null) => void
}
export const keyQuestion = signal<KeyQuestion | null>(null)

let asking: Promise<boolean> | null = null

// Resolves to whether there is a key now. Requests that need one at the same time share one question.
export function askForKey(wasRefused: boolean): Promise<boolean> {
  if (key !== null) return Promise.resolve(true)
  asking ??= new Promise<boolean>((resolve) => {
    keyQuestion.value = {
      wasRefused,
      answer: (given) => {
        keyQuestion.value = null
        asking = null
        if (given) {
          key = given
          sessionStorage.setItem(KEY, given)
        }
        resolve(given !== null && given !== '')
      },
    }
  })
  return asking
}
