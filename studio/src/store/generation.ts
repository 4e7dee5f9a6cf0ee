// generation.ts  Answers being written. Their text lives in signals of its own and reaches the conversation when it
// ends, so that a token costs the page one small update and not a new list of conversations.
import { effect, signal, type Signal } from '@preact/signals'
import * as api from '../api/client'
import { announce } from '../ui/announcer'
import { notify } from '../ui/notice'
import { newId } from '../id'
import { t } from '../i18n'
import { partAt, showVariant } from './branches'
import { Collector, NO_SPEED, type LiveText } from './collector'
import { find, followOthers, start, titleOf, update, updateMessage, withoutEnd } from './conversations'
import type { AttachedFile, Conversation, Message, Outcome, ToolCall } from './conversations'
import { changeDraft } from './drafts'
import { contextLength } from './model'
import { chatBody } from './request'
import { settings } from './settings'
import type { Before } from './tokens'
import { elsewhere, onNews, tell, thisPage } from './tabs'
import { laterStart } from './window'

export interface Live {
  messageId: string
  text: Signal<LiveText>
  stop: () => void
  keep: () => void // writes what there is into the conversation
  stopThinking: () => void
  tell: () => void // other pages, what there is
  giveWay: () => void // to another page that writes it
}

// By conversation.
export const running = signal<ReadonlyMap<string, Live>>(new Map())

export const isBeingWritten = (id: string) => running.value.has(id) || elsewhere.value.has(id)

// Ends the answer of a conversation, whichever page writes it.
export function stop(id: string) {
  const live = running.value.get(id)
  if (live) live.stop()
  else if (elsewhere.value.has(id)) tell({ kind: 'stop', id })
}

function setRunning(id: string, live: Live | null) {
  const next = new Map(running.value)
  if (live) next.set(id, live)
  else next.delete(id)
  running.value = next
}

// The list of models, which says how long the context is, may still be on its way when the first answers end.
const CONTEXT_WAIT_MS = 5000
function contextKnown(): Promise<void> {
  if (contextLength.value !== null) return Promise.resolve()
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      resolve()
      queueMicrotask(forget)
    }
    const timer = setTimeout(done, CONTEXT_WAIT_MS)
    const forget = effect(() => {
      if (contextLength.value !== null) done()
    })
  })
}

// An answer that ended for want of tokens did so by a limit of the settings, or because the context is full.
function endOf({ finish, text }: Collector): Partial<Message> {
  const context = contextLength.value
  const total = text.value.speed.totalTokens
  if (finish === 'length' && context && total && total >= context - 1) {
    return { outcome: 'full', size: { tokens: total, context } }
  }
  return { outcome: finish === 'length' || finish === 'loop' ? finish : 'done' }
}

const SAVING_MS = 2000
const TELLING_MS = 500

// What other pages want of the answers that are written here. Two that began the same one at the same moment agree on the
// page with the smaller name.
export function answerOthers() {
  followOthers((id) => running.value.has(id))
  onNews((news) => {
    if (news.kind === 'hello') {
      for (const live of running.value.values()) {
        live.keep()
        live.tell()
      }
    }
    if (news.kind === 'put') giveBack(news.conversation)
    if (news.kind === 'stop' || news.kind === 'gone') running.value.get(news.id)?.stop()
    if (news.kind === 'writing' && news.by < thisPage) running.value.get(news.id)?.giveWay()
  })
}

// Questions whose answer gave way, by conversation, until the other page has shown its own.
const gaveWay = new Map<string, Message>()

// Both pages asked something: what the other does not have is in the composer again.
function giveBack(theirs: Conversation) {
  const mine = gaveWay.get(theirs.id)
  gaveWay.delete(theirs.id)
  if (!mine || theirs.messages.some((m) => m.id === mine.id)) return
  changeDraft(theirs.id, ({ text, files }) => ({
    text: text ? `${mine.content}\n${text}` : mine.content,
    files: [...(mine.files ?? []), ...files],
  }))
  notify(t('askedElsewhere'))
}

// What can be read of it: this much is told to other pages again and again.
const written = ({ content, reasoning, toolCalls, run, citations, speed }: LiveText): Partial<Message> => ({
  content,
  ...(reasoning ? { reasoning } : {}),
  ...(toolCalls.length ? { toolCalls } : {}),
  ...(run ? { run } : {}),
  ...(citations.length ? { citations } : {}),
  speed,
})

// Writes the answer to the last message of the conversation; where that is an answer itself, goes on with it.
export async function generate(id: string) {
  const conversation = find(id)
  if (!conversation || isBeingWritten(id)) return
  const last = conversation.messages.at(-1)
  const begun = last?.role === 'assistant' ? last : null
  const message: Message = begun ?? { id: newId(), role: 'assistant', content: '' }
  const abort = new AbortController()
  const collector = new Collector(begun)
  let requestId: string | null = null
  let hasGivenWay = false
  let toldAt = 0
  const keep = (end: Partial<Message> = {}) => {
    const text = collector.publish()
    const { heat, sources } = text
    updateMessage(id, message.id, {
      ...written(text),
      ...(heat.length ? { heat } : {}),
      ...(sources.length ? { sources } : {}),
      ...end,
    })
  }
  const tellOthers = () => {
    toldAt = performance.now()
    tell({ kind: 'writing', id, by: thisPage, messageId: message.id, text: written(collector.publish()) })
  }
  // Timers of a hidden page hardly run; what comes from the server does.
  const tellSometimes = () => {
    if (performance.now() - toldAt >= TELLING_MS) tellOthers()
  }
  const saving = setInterval(() => keep(), SAVING_MS)
  const telling = setInterval(tellSometimes, TELLING_MS)

  setRunning(id, {
    messageId: message.id,
    text: collector.text,
    stop: () => abort.abort(),
    keep: () => keep(),
    stopThinking: () => {
      // Refused when the thought has just ended by itself, which is what was wanted.
      if (requestId) api.stopThinking(requestId).catch(() => undefined)
    },
    tell: tellOthers,
    giveWay: () => {
      hasGivenWay = true
      abort.abort()
    },
  })
  update(id, (c) => ({ messages: [...c.messages.filter((m) => m !== begun), withoutEnd(message)] }))
  tellOthers()
  let end: Partial<Message> = { outcome: 'done' }
  try {
    const stream = await api.streamChat(chatBody(conversation, settings.value), abort.signal)
    requestId = stream.requestId
    for await (const chunk of stream.chunks) {
      collector.add(chunk)
      tellSometimes()
    }
    collector.publish()
    if (collector.finish === 'length') await contextKnown()
    end = endOf(collector)
  } catch (error) {
    end = failure(error)
  }
  clearInterval(saving)
  clearInterval(telling)
  if (hasGivenWay) {
    setRunning(id, null)
    if (last?.role === 'user') gaveWay.set(id, last)
    return tell({ kind: 'hello' })
  }
  keep({ ...end, ...(requestId ? { requestId } : {}) })
  setRunning(id, null)
  tell({ kind: 'written', id })
  announce(t(end.outcome === 'done' ? 'answerComplete' : 'answerEnded'))
}

function failure(error: unknown): Partial<Message> {
  if (error instanceof DOMException && error.name === 'AbortError') return { outcome: 'stopped' }
  if (error instanceof api.ConnectionLost) return { outcome: 'lost' }
  if (error instanceof api.ApiError && error.code === 'context_length_exceeded') {
    const size = { tokens: error.promptTokens, context: error.context ?? contextLength.value }
    return { outcome: 'overlong', error: error.message, size }
  }
  return { outcome: 'failed', error: error instanceof Error ? error.message : String(error) }
}

export function send(id: string | null, content: string, files: AttachedFile[]) {
  const conversation = find(id) ?? start()
  const message: Message = { id: newId(), role: 'user', content, ...(files.length ? { files } : {}) }
  update(conversation.id, (c) => ({
    title: c.title || titleOf(content) || (files[0]?.name ?? ''),
    messages: [...c.messages, message],
  }))
  void generate(conversation.id)
}

// The server goes on with a text, or with a thought where there is no text yet; a call that broke off is begun anew.
const isText = (answer: Message) => answer.content !== '' && !answer.toolCalls?.length
const isThought = (answer: Message) => !!answer.reasoning && !answer.content && !answer.toolCalls?.length

const BROKEN_OFF: (Outcome | undefined)[] = ['stopped', 'length', 'lost']
export const canContinue = (answer: Message) => BROKEN_OFF.includes(answer.outcome) && (isText(answer) || isThought(answer))

// Past a full context: the oldest turns are not sent any more, and the last answer is given, or goes on where it broke
// off. Where one turn alone fills the context the next question begins anew.
export function goOn(id: string) {
  const conversation = find(id)
  const last = conversation?.messages.at(-1)
  if (!conversation || !last?.size || isBeingWritten(id)) return
  const start = laterStart(conversation, last.size)
  if (start === null) return update(id, (c) => ({ unsent: c.messages.length }))
  const isBegun = last.outcome === 'full' && isText(last)
  update(id, (c) => ({ unsent: start, messages: isBegun ? c.messages : c.messages.slice(0, -1) }))
  void generate(id)
}

export const includeAll = (id: string) => update(id, () => ({ unsent: 0 }))

// Another message in the place of this one, or none: what was there, and all after it, is a branch now.
function replace(id: string, messageId: string, other: (old: Message) => Message | null): boolean {
  const at = find(id)?.messages.findIndex((m) => m.id === messageId) ?? -1
  if (at < 0 || isBeingWritten(id)) return false
  update(id, (c) => {
    const parted = partAt(c, at)
    const message = other(c.messages[at]!)
    return message ? { ...parted, messages: [...parted.messages, message] } : parted
  })
  return true
}

// The answer again, from the question on.
export function regenerate(id: string, messageId: string) {
  if (replace(id, messageId, () => null)) void generate(id)
}

export function edit(id: string, messageId: string, content: string) {
  if (replace(id, messageId, (old) => ({ ...old, id: newId(), content }))) void generate(id)
}

// Another token in the place of one: a variant that has what comes `before` it, the token, and goes on from there.
export function chooseToken(id: string, messageId: string, at: number, before: Before, token: string) {
  const isReplaced = replace(id, messageId, ({ reasoning, heat = [], speed }) => {
    const thinkingTokens = before.isThought ? at + 1 : (speed?.thinkingTokens ?? 0)
    const thought = before.isThought ? before.text + token : reasoning
    return {
      id: newId(),
      role: 'assistant',
      content: before.isThought ? '' : before.text + token,
      ...(thought ? { reasoning: thought } : {}),
      heat: [...heat.slice(0, at), { ...heat[at]!, token, chosen: true, guessed: false }],
      speed: { ...NO_SPEED, tokens: at + 1, thinkingTokens },
    }
  })
  if (isReplaced) void generate(id)
}

export function chooseVariant(id: string, messageId: string, place: number) {
  if (isBeingWritten(id)) return
  update(id, (c) => ({
    updated: c.updated,
    ...showVariant(c, c.messages.findIndex((m) => m.id === messageId), place),
  }))
}

// Adds the result of a call; when the last missing one has come, the model goes on.
export function giveResult(id: string, callId: string, content: string) {
  const result: Message = { id: newId(), role: 'tool', content, toolCallId: callId }
  update(id, (c) => ({ messages: [...c.messages, result] }))
  if (openCalls(find(id)?.messages ?? []).length === 0) void generate(id)
}

// Calls of the last answer that have no result yet.
export function openCalls(messages: Message[]): ToolCall[] {
  const at = messages.findLastIndex((m) => m.role === 'assistant')
  const given = new Set(messages.slice(at + 1).map((m) => m.toolCallId))
  return (messages[at]?.toolCalls ?? []).filter((call) => !given.has(call.id))
}
