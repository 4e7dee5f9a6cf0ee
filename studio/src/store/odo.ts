// odo.ts  The orchestrator of the server: what it has, whether the open conversation is answered by it, and the calls that
// wait for a word.
import { signal } from '@preact/signals'
import * as api from '../api/client'
import type { OdoStatus, OdoTool } from '../api/types'
import { complain } from './complain'
import { openConversation, update } from './conversations'
import { changeDraft, draftOf } from './drafts'
import { objects } from './read'
import { readTrace, type Trace } from './run'
import { modelList } from './session'

// How a conversation is answered where the model does not answer alone. '' is automatic.
export interface OdoChoice {
  mode: string
  route: string
}

// Null: this server has none. Undefined: not known yet.
export const odo = signal<OdoStatus | null | undefined>(undefined)
export const odoTools = signal<OdoTool[]>([])
export const traces = signal<Trace[]>([])

export const ODO = 'odo'

const isMissing = (error: unknown) => error instanceof api.ApiError && error.status === 404

// A server whose list of models does not name it is not asked.
export async function loadOdo() {
  if (!modelList.value.some((model) => model.id === ODO)) odo.value = null
  else odo.value = await api.odoStatus().catch((error) => (isMissing(error) ? null : odo.value))
}

export async function loadOdoScreen() {
  try {
    odo.value = await api.odoStatus()
    odoTools.value = await api.odoTools()
    traces.value = objects(await api.odoTraces()).map(readTrace)
  } catch (error) {
    if (isMissing(error)) odo.value = null
    else complain(error)
  }
}

// Of the open conversation, or of the one that is not begun yet. Null: the model alone.
export const openOdo = (): OdoChoice | null => (openConversation.value ?? draftOf(null)).odo ?? null

export function setOpenOdo(choice: OdoChoice | null) {
  const conversation = openConversation.value
  if (conversation) update(conversation.id, () => ({ odo: choice }))
  else changeDraft(null, () => ({ odo: choice }))
}

// What a request says of it. What the server does not have any more is not asked for.
export function odoFields(choice: OdoChoice | null | undefined): object {
  if (!choice || odo.value === null) return {}
  const { modes = [choice.mode], routes } = odo.value ?? {}
  const mode = modes.includes(choice.mode) ? choice.mode : ''
  const route = !routes || choice.route in routes ? choice.route : ''
  return { model: ODO, odo: { approve: true, ...(mode ? { mode } : {}), ...(route ? { route } : {}) } }
}

// Whether the word has reached the call.
export async function answerApproval(id: string, allow: boolean): Promise<boolean> {
  try {
    await api.answerApproval(id, allow)
    return true
  } catch (error) {
    complain(error)
    return false
  }
}
