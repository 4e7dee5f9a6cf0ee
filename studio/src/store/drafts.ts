// drafts.ts  What is being written and not yet sent. A draft belongs to its conversation, or to the one that is not
// begun yet, and is kept from the first letter on.
import { signal } from '@preact/signals'
import type { AttachedFile } from './conversations'
import { draftRecords } from './database'
import type { OdoChoice } from './odo'
import { onNews, tell } from './tabs'

export interface Draft {
  text: string
  files: AttachedFile[]
  system: string // of the conversation that is not begun yet; the others have their own
  odo?: OdoChoice | null // the same
}

export interface StoredDraft extends Draft {
  id: string
}

const NOT_BEGUN = ''
const empty: Draft = { text: '', files: [], system: '' }

const drafts = signal<ReadonlyMap<string, Draft>>(new Map())

// `id`: null before there is a conversation.
export const draftOf = (id: string | null): Draft => drafts.value.get(id ?? NOT_BEGUN) ?? empty

const isEmpty = (draft: Draft) => !draft.text && !draft.files.length && !draft.system && !draft.odo

// The database is slower than a reload: what it has not confirmed when the page goes away waits in local storage for the
// next page, which takes it out again.
const WAITING = 'chimere.drafts'
const unsaved = new Map<string, Draft>()
addEventListener('pagehide', () => {
  if (unsaved.size) localStorage.setItem(WAITING, JSON.stringify([...unsaved]))
})

function takeWaiting(): [string, Draft][] {
  const waiting = localStorage.getItem(WAITING)
  localStorage.removeItem(WAITING)
  return waiting ? JSON.parse(waiting) : []
}

// What was changed before the kept drafts had been read: newer than all of them. null: they have been.
let early: Map<string, Draft> | null = new Map()
let droppedEarly = false

function show(key: string, draft: Draft) {
  early?.set(key, draft)
  const next = new Map(drafts.value)
  if (isEmpty(draft)) next.delete(key)
  else next.set(key, draft)
  drafts.value = next
}

// What is written in another page is written here too; it has kept it already.
onNews((news) => {
  if (news.kind === 'draft') show(news.key, news.draft)
  if (news.kind === 'cleared') drafts.value = new Map()
})

function put(key: string, draft: Draft) {
  show(key, draft)
  tell({ kind: 'draft', key, draft })
  unsaved.set(key, draft)
  const done = isEmpty(draft) ? draftRecords.remove(key) : draftRecords.save({ id: key, ...draft })
  const confirm = () => {
    if (unsaved.get(key) === draft) unsaved.delete(key)
  }
  // Without storage a draft lasts as long as the tab; the page says so already for its conversations.
  done.then(confirm, confirm)
}

export function changeDraft(id: string | null, change: (draft: Draft) => Partial<Draft>) {
  const draft = draftOf(id)
  put(id ?? NOT_BEGUN, { ...draft, ...change(draft) })
}

export const dropDraft = (id: string | null) => put(id ?? NOT_BEGUN, empty)

// The conversation has begun: what was written for it is its own now. Returns what the conversation itself keeps.
export function adoptDraft(id: string): Pick<Draft, 'system' | 'odo'> {
  const { system, odo, ...draft } = draftOf(null)
  dropDraft(null)
  put(id, { ...draft, system: '' })
  return { system, ...(odo ? { odo } : {}) }
}

export function dropAllDrafts() {
  drafts.value = new Map()
  unsaved.clear()
  early?.clear()
  droppedEarly = early !== null
  localStorage.removeItem(WAITING)
  draftRecords.clear().catch(() => undefined)
}

export async function loadDrafts() {
  const stored = await draftRecords.loadAll()
  const kept = droppedEarly ? [] : stored
  const changed = [...takeWaiting(), ...(early ?? [])]
  early = null
  drafts.value = new Map(kept.map(({ id, ...draft }): [string, Draft] => [id, draft]))
  for (const [key, draft] of changed) put(key, draft)
}
