// conversations.ts  The conversations and which one is open. Values are replaced, never changed in place.
import { computed, signal } from '@preact/signals'
import { newId } from '../id'
import type { Branch } from './branches'
import { conversationRecords as records } from './database'
import { markElsewhere, onNews, tell } from './tabs'
import type { OdoChoice } from './odo'
import type { Citation, Run } from './run'
import { adoptDraft, changeDraft, draftOf, dropAllDrafts, dropDraft, loadDrafts } from './drafts'

export interface ToolCall {
  id: string
  name: string
  arguments: string
}

export interface AttachedFile {
  name: string
  text: string
}

// What one answer cost, for the strip below it.
export interface Speed {
  firstTokenMs: number | null
  tokensPerSecond: number | null
  tokens: number
  thinkingTokens: number
  promptTokens: number | null
  cachedTokens: number | null
  guessedTokens?: number | null // of the answer, guessed ahead and right
  totalTokens?: number | null // of the prompt and the answer
}

// A token and how sure the model was of it, for the heat strip.
export interface Heat {
  token: string
  certainty: number
  entropy: number
  guessed?: boolean // ahead, and right
  chosen?: boolean // by hand, in the place of another
  others?: { token: string; share: number }[] // what the model might have written here, this token among them
  bytes?: number[] // of a token that is not whole letters
}

// full: the answer filled the context. overlong: the conversation does not fit, so that there is no answer at all.
export type Outcome = 'done' | 'length' | 'full' | 'overlong' | 'loop' | 'stopped' | 'lost' | 'failed'

// What an answer was given to read: a note or a passage.
export interface Source {
  source: string
  text: string
}

export interface Message {
  id: string
  role: 'user' | 'assistant' | 'tool'
  content: string
  reasoning?: string
  files?: AttachedFile[]
  toolCalls?: ToolCall[]
  toolCallId?: string
  outcome?: Outcome // of an answer; missing while it is being written
  error?: string
  size?: { tokens: number | null; context: number | null } // of the conversation and the context, where one is full
  speed?: Speed
  heat?: Heat[]
  sources?: Source[]
  run?: Run // of the orchestrator
  citations?: Citation[] // beside those of the run
  requestId?: string // of the answer, by which the server knows it
  thumb?: 'up' | 'down' | null // what the user thought of it
}

export interface Conversation {
  id: string
  title: string
  created: number
  updated: number
  system: string
  odo?: OdoChoice | null // null or missing: the model answers alone
  messages: Message[]
  unsent?: number // so many of the first messages are not sent any more
  branches?: Branch[] // other ways it went
  pinned?: boolean // stands before the others
}

export const conversations = signal<Conversation[]>([])
export const isLoaded = signal(false)
export const storageFailed = signal(false)
export const openId = signal<string | null>(null)
export const openConversation = computed(() => find(openId.value))

export const find = (id: string | null) => conversations.value.find((c) => c.id === id)

// Those that were deleted before the kept ones had been read.
const goneEarly = { all: false, ids: new Set<string>() }

const newestFirst = (list: Conversation[]) => [...list].sort((a, b) => b.updated - a.updated)

export async function loadConversations() {
  try {
    const stored = await records.loadAll()
    const begun = conversations.value // while they were being read: newer than all of them
    const kept = goneEarly.all ? [] : stored.filter((s) => !goneEarly.ids.has(s.id))
    const others = kept.filter((s) => !begun.some((c) => c.id === s.id))
    conversations.value = newestFirst([...begun, ...others.map(closeUnfinished)])
    await loadDrafts()
    if (!openConversation.value) openId.value = conversations.value[0]?.id ?? null
  } catch {
    storageFailed.value = true
  }
  isLoaded.value = true
}

// An answer that was being written when the page went away will not go on.
function closeUnfinished(conversation: Conversation): Conversation {
  const messages = conversation.messages.map((m) =>
    m.role === 'assistant' && !m.outcome ? { ...m, outcome: 'stopped' as const } : m,
  )
  return { ...conversation, messages }
}

function show(conversation: Conversation) {
  conversations.value = newestFirst([conversation, ...conversations.value.filter((c) => c.id !== conversation.id)])
}

export function put(conversation: Conversation) {
  show(conversation)
  tell({ kind: 'put', conversation })
  records.save(conversation).catch(() => (storageFailed.value = true))
}

// What another browser did, in the place of what is here.
export function replaceWith(conversation: Conversation) {
  put(conversation)
  if (!openId.value) openId.value = conversation.id
}

export function start(): Conversation {
  const now = Date.now()
  const id = newId()
  const conversation = { id, title: '', created: now, updated: now, ...adoptDraft(id), messages: [] }
  put(conversation)
  openId.value = conversation.id
  return conversation
}

export function update(id: string, change: (conversation: Conversation) => Partial<Conversation>) {
  const conversation = find(id)
  if (conversation) put({ ...conversation, updated: Date.now(), ...change(conversation) })
}

export function updateMessage(id: string, messageId: string, change: Partial<Message>) {
  update(id, (c) => ({ messages: c.messages.map((m) => (m.id === messageId ? { ...m, ...change } : m)) }))
}

function hide(id: string) {
  if (!isLoaded.value) goneEarly.ids.add(id)
  conversations.value = conversations.value.filter((c) => c.id !== id)
  if (openId.value === id) openId.value = conversations.value[0]?.id ?? null
}

// Returns what brings it back, with its draft.
export function remove(id: string): () => void {
  const conversation = find(id)
  const draft = draftOf(id)
  hide(id)
  tell({ kind: 'gone', id })
  dropDraft(id)
  records.remove(id).catch(() => (storageFailed.value = true))
  return () => {
    goneEarly.ids.delete(id)
    if (!conversation) return
    put(closeUnfinished(conversation))
    changeDraft(id, () => draft)
    openId.value = id
  }
}

function hideAll() {
  goneEarly.all = !isLoaded.value
  conversations.value = []
  openId.value = null
}

export function removeAll() {
  hideAll()
  tell({ kind: 'cleared' })
  dropAllDrafts()
  records.clear().catch(() => (storageFailed.value = true))
}

// The system prompt of the open conversation, or of the one that is not begun yet.
export const openSystem = () => openConversation.value?.system ?? draftOf(null).system

export function setOpenSystem(system: string) {
  const conversation = openConversation.value
  if (conversation) update(conversation.id, () => ({ system }))
  else changeDraft(null, () => ({ system }))
}

// What another page did. It has kept it already.
export function followOthers(isWrittenHere: (id: string) => boolean) {
  onNews((news) => {
    if (news.kind === 'put' && !isWrittenHere(news.conversation.id)) show(news.conversation)
    if (news.kind === 'gone') hide(news.id)
    if (news.kind === 'cleared') hideAll()
    if (news.kind === 'written') markElsewhere(news.id, false)
    if (news.kind === 'writing' && !isWrittenHere(news.id)) {
      const { id, messageId, text } = news
      const shown = find(id)
      const open = (m: Message) => (m.id === messageId ? { ...withoutEnd(m), ...text } : m)
      if (shown) show({ ...shown, messages: shown.messages.map(open) })
      markElsewhere(id, true, () => {
        const left = find(id)
        if (left) show(closeUnfinished(left))
      })
    }
  })
  tell({ kind: 'hello' })
}

// An answer that goes on has not ended.
export function withoutEnd({ outcome: _, size: __, ...open }: Message): Message {
  return open
}

export function titleOf(text: string): string {
  const line = text.trim().split('\n')[0] ?? ''
  return line.length > 60 ? line.slice(0, 59).trimEnd() + '…' : line
}
