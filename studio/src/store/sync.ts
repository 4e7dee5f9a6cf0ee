// sync.ts  Conversations on the server, too, where a person wants that: the browsers of one key agree.
//
// Of each conversation that both sides had, the page remembers the server's revision and a print of its own text. So it
// knows, also after days without the server, what was changed here, what there, and what was deleted:
//
//   here \ there   as remembered      changed          gone
//   as remembered  nothing            take it          delete it here
//   changed        send it            keep both        send it again
//   gone           delete it there    take it          forget about it
//
// Whatever is sent names the revision that is remembered, and the server refuses where another browser was faster; the
// next round then sees that. What is in two browsers at once and differs stays twice: the server's under its name, this
// browser's as a copy. A collection of another name was begun anew: nothing is known of it, so nothing is deleted.
import { effect, signal } from '@preact/signals'
import * as api from '../api/client'
import { newId } from '../id'
import { t } from '../i18n'
import { notify } from '../ui/notice'
import { conversations, find, isLoaded, put, remove, replaceWith, storageFailed, type Conversation } from './conversations'
import { syncRecords } from './database'
import { isBeingWritten, running } from './generation'
import { isOnline, reconnects } from './session'
import { change, settings } from './settings'
import { readKept } from './transfer'

export interface SyncState {
  id: string // of the conversation; STORE: of the collection
  revision: number
  print: string // of the collection its name
}

const STORE = '/'
const LOOK_MS = 4000
const SOON_MS = 800

// off: not wanted. none: the server keeps none.
export type SyncPhase = 'off' | 'working' | 'done' | 'offline' | 'none' | 'full' | 'failed'
export const phase = signal<SyncPhase>('off')
export const room = signal<{ bytes: number; limit: number; count: number } | null>(null)

let known = new Map<string, SyncState>()
let store = ''
let tag = '' // of the list that is settled
let lastTag = '' // of the last list
let isKnownRead = false
let isFullSaid = false

// Of a text, 64 bits: two that differ have the same one never in practice, and then a change waits for the next one.
function printOf(text: string): string {
  let [a, b] = [0xdeadbeef, 0x41c6ce57]
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    a = Math.imul(a ^ code, 0x9e3779b1)
    b = Math.imul(b ^ code, 0x5f356495)
  }
  a ^= b >>> 15
  b ^= a >>> 13
  return (a >>> 0).toString(36) + (b >>> 0).toString(36) + text.length.toString(36)
}

// Values are replaced and never changed, so each is written out once.
const written = new WeakMap<Conversation, { text: string; print: string }>()
function textOf(conversation: Conversation) {
  let found = written.get(conversation)
  if (!found) {
    const text = JSON.stringify(readKept(conversation))
    found = { text, print: printOf(text) }
    written.set(conversation, found)
  }
  return found
}

async function remember(id: string, revision: number, print: string) {
  const state = { id, revision, print }
  known.set(id, state)
  await syncRecords.save(state)
}

async function forget(id: string) {
  known.delete(id)
  await syncRecords.remove(id)
}

async function readKnown() {
  if (isKnownRead) return
  const states = await syncRecords.loadAll()
  store = states.find((state) => state.id === STORE)?.print ?? ''
  known = new Map(states.filter((state) => state.id !== STORE).map((state) => [state.id, state]))
  isKnownRead = true
}

async function beginAnew(name: string) {
  known.clear()
  await syncRecords.clear()
  store = name
  await syncRecords.save({ id: STORE, revision: 0, print: name })
}

const isWorthKeeping = ({ messages, system, title }: Conversation) => messages.length > 0 || !!system || !!title

// What did not fit, by its print: it is not sent again until it changes, or the server's list does.
const tooMuch = new Map<string, string>()

async function send(conversation: Conversation, revision: number) {
  const { id } = conversation
  const { text, print } = textOf(conversation)
  if (tooMuch.get(id) === print) return
  tooMuch.delete(id)
  try {
    await remember(id, await api.writeConversation(id, text, revision), print)
  } catch (error) {
    if (!(error instanceof api.ApiError) || ![413, 507].includes(error.status)) throw error
    tooMuch.set(id, print)
    if (!isFullSaid) notify(t('syncFull', { reason: error.message }), 'error')
    isFullSaid = true
  }
}

// The server's in the place of ours; ours stays as a copy where it says something else.
async function take(id: string, ours: Conversation | undefined, isOursNew: boolean) {
  const { revision, value } = await api.readConversation(id)
  const theirs = readKept(value)
  if (!theirs || isBeingWritten(id)) return
  const { print } = textOf({ ...theirs, id })
  if (ours && isOursNew && textOf(ours).print !== print) {
    put({ ...ours, id: newId(), title: t('syncCopy', { title: ours.title || t('unnamed') }) })
    notify(t('syncConflict', { title: ours.title || t('unnamed') }))
  }
  if (!ours || textOf(ours).print !== print) replaceWith({ ...theirs, id })
  await remember(id, revision, print)
}

async function settle(id: string, there: number) {
  const here = find(id)
  const state = known.get(id)
  if (isBeingWritten(id)) return
  const isNewHere = !!here && (!state || textOf(here).print !== state.print)
  const isNewThere = there > 0 && state?.revision !== there
  if (here && !isWorthKeeping(here) && !there) return
  if (isNewThere) await take(id, here, isNewHere)
  else if (there) {
    if (isNewHere) await send(here, there)
    else if (!here) {
      await api.deleteConversation(id, there)
      await forget(id)
    }
  } else if (here && (!state || isNewHere)) await send(here, 0)
  else {
    if (here) remove(id)
    if (state) await forget(id)
  }
}

let isRound = false
let again = false

async function round() {
  if (!settings.value.keepOnServer || !isLoaded.value || storageFailed.value) return
  if (isRound) {
    again = true
    return
  }
  isRound = true
  try {
    await readKnown()
    const list = await api.listConversations(tag)
    if (list) {
      // Only once all of it is settled; what fails on the way is looked at again.
      tag = ''
      if (list.tag !== lastTag) tooMuch.clear()
      lastTag = list.tag
      if (list.store !== store) await beginAnew(list.store)
      room.value = { bytes: list.bytes, limit: list.limits.bytes, count: list.data.length }
    }
    const there = new Map(
      list
        ? list.data.map(({ id, revision }) => [id, revision])
        : [...known.values()].map(({ id, revision }) => [id, revision]),
    )
    const ids = new Set([...there.keys(), ...known.keys(), ...conversations.value.map((c) => c.id)])
    if (phase.value !== 'done') phase.value = 'working'
    for (const id of ids) {
      if (!settings.value.keepOnServer) return
      try {
        await settle(id, there.get(id) ?? 0)
      } catch (error) {
        // Another browser was faster: the next round sees what it did.
        if (!(error instanceof api.ApiError) || ![404, 412].includes(error.status)) throw error
        again = true
      }
    }
    if (list && !again) tag = list.tag
    phase.value = tooMuch.size ? 'full' : 'done'
  } catch (error) {
    tag = ''
    if (error instanceof api.ConnectionLost) phase.value = 'offline'
    else phase.value = error instanceof api.ApiError && error.status === 404 ? 'none' : 'failed'
  } finally {
    isRound = false
    if (again) {
      again = false
      soon()
    }
  }
}

let timer: ReturnType<typeof setTimeout> | undefined
function soon() {
  clearTimeout(timer)
  timer = setTimeout(() => void round(), SOON_MS)
}

export function startSync() {
  // What changes here is sent when it rests, and an answer when it is written.
  effect(() => {
    void conversations.value
    void running.value
    void reconnects.value
    void isLoaded.value
    if (settings.value.keepOnServer) soon()
    else phase.value = 'off'
  })
  setInterval(() => {
    if (settings.value.keepOnServer && isOnline.value && !document.hidden) void round()
  }, LOOK_MS)
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && settings.value.keepOnServer) soon()
  })
}

// They stay in this browser. What the server has is deleted there where that is wanted.
export function stopSync() {
  change({ keepOnServer: false })
  clearTimeout(timer)
  room.value = null
  tag = ''
}

export async function eraseOnServer() {
  try {
    await api.deleteAllConversations()
    notify(t('syncErased'))
  } catch (error) {
    notify(t('syncNotErased', { reason: error instanceof Error ? error.message : t('connectionLostShort') }), 'error')
  }
}
