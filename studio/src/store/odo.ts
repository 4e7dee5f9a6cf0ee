// odo.ts  The orchestrator of the server: what it has, whether the open conversation is answered by it, and the calls that
// wait for a word.
import { signal } from '@preact/signals'
import * as api from '../api/client'
import type { OdoStatus, OdoTool } from '../api/types'
import { collections } from './collections'
import { complain } from './complain'
import { openConversation, update } from './conversations'
import { changeDraft, draftOf } from './drafts'
import { objects } from './read'
import { readTrace, type Trace } from './run'
import { modelList } from './session'

// How a conversation is answered where the model does not answer alone. '' or missing is automatic: as the route says.
export interface OdoChoice {
  mode: string
  route: string
  collections?: string[] | undefined // to look in; an empty list: in none
  web?: boolean | undefined // whether the web is searched
  tools?: string[] | undefined // that may be called; an empty list: none
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
  if (odo.value) odoTools.value = await api.odoTools().catch(() => odoTools.value)
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

// As many as a request may name, of tools and of collections.
export const MOST_NAMED = 64

const those = (names: string[], there: { name: string }[] | undefined) =>
  (there ? names.filter((name) => there.some((one) => one.name === name)) : names).slice(0, MOST_NAMED)

// Of a choice what the server has: what it does not have any more is neither asked for nor shown. Before it has told
// what it has, all of the choice may be right.
export function usable(choice: OdoChoice): OdoChoice {
  const { modes = [choice.mode], routes, web: canSearch = !odo.value } = odo.value ?? {}
  const there = collections.value === null ? [] : collections.value?.data
  return {
    mode: modes.includes(choice.mode) ? choice.mode : '',
    route: !routes || choice.route in routes ? choice.route : '',
    collections: choice.collections && those(choice.collections, there),
    web: choice.web && !canSearch ? undefined : choice.web,
    tools: choice.tools && those(choice.tools, odoTools.value.length ? odoTools.value : undefined),
  }
}

// What a request says of it.
export function odoFields(choice: OdoChoice | null | undefined): object {
  if (!choice || odo.value === null) return {}
  const { mode, route, ...others } = usable(choice)
  return { model: ODO, odo: { approve: true, ...(mode ? { mode } : {}), ...(route ? { route } : {}), ...others } }
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
