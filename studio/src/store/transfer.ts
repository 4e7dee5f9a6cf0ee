// transfer.ts  Conversations as files: JSON, which keeps everything, and Markdown, which people can read.
//
// The Markdown carries each message behind a comment, <!-- chimere:user -->, so that it can be read back whatever the
// message says. A message that has such a comment itself gets a backslash in it. Branches come after the messages that are
// shown, each behind the number of the message that it follows, counted as they stand in the file; -1: it is a beginning.
import { newId } from '../id'
import type { Branch } from './branches'
import { promptName, type Library } from './library'
import type { OdoChoice } from './odo'
import { isObject, number, objects, text } from './read'
import { citationsMarkdown, citationsOf, readCitations, readRun, runMarkdown } from './run'
import { thinkingMode } from './settings'
import type { Conversation, Heat, Message, Outcome, Speed, ToolCall } from './conversations'

const FORMAT = 'chimere-conversations'

export const toJson = (list: Conversation[], library: Partial<Library> = {}) =>
  JSON.stringify({ format: FORMAT, version: 1, conversations: list, ...library }, null, 2)

const HEADINGS = { user: 'You', assistant: 'Model', tool: 'Tool' }
const protect = (text: string) => text.replace(/<!-- (\\*)chimere:/g, '<!-- \\$1chimere:')
const unprotect = (text: string) => text.replace(/<!-- \\(\\*)chimere:/g, '<!-- $1chimere:')
const mark = (name: string, value = '') => `<!-- chimere:${name}${value && ' ' + value} -->`
// Inside a comment two hyphens would end it.
const inComment = (value: unknown) => JSON.stringify(value).replace(/--/g, '-\\u002d').replace(/>/g, '\\u003e')

function messageMarkdown(message: Message): string {
  const parts = [mark(message.role, message.toolCallId ? inComment(message.toolCallId) : ''), `## ${HEADINGS[message.role]}`]
  for (const file of message.files ?? []) parts.push(mark('file', inComment(file.name)), protect(file.text))
  if (message.reasoning) parts.push(mark('thinking'), protect(message.reasoning))
  parts.push(mark('text'), protect(message.content))
  if (message.toolCalls?.length) parts.push(mark('calls', inComment(message.toolCalls)))
  // For people alone: what reads these files back leaves both out.
  const cited = citationsOf(message.run, message.citations)
  if (cited.length) parts.push(mark('sources'), protect(citationsMarkdown(cited)))
  if (message.run) parts.push(mark('steps'), protect(runMarkdown(message.run)))
  return parts.join('\n') + '\n'
}

function branchesMarkdown({ messages, branches = [] }: Conversation): string[] {
  const order = [...messages, ...branches.flatMap((branch) => branch.messages)].map((message) => message.id)
  return branches.flatMap(({ after, place, unsent, messages: inside }) => [
    `${mark('branch', inComment({ after: order.indexOf(after ?? ''), place, unsent }))}\n# Another way it went\n`,
    ...inside.map(messageMarkdown),
  ])
}

export function toMarkdown(conversation: Conversation): string {
  const head = `# ${conversation.title.replace(/\n/g, ' ')}\n`
  const system = conversation.system ? `${mark('system')}\n${protect(conversation.system)}\n` : ''
  return [head, system, ...conversation.messages.map(messageMarkdown), ...branchesMarkdown(conversation)]
    .filter((part) => part)
    .join('\n')
}

// Several in one file, each behind a comment with what people need not read.
export const toMarkdownFile = (list: Conversation[]) =>
  list
    .map((c) => {
      const { created, updated, pinned } = c
      return `${mark('conversation', inComment({ created, updated, pinned }))}\n${toMarkdown(c)}`
    })
    .join('\n')

function readCalls(value: unknown): ToolCall[] {
  if (!Array.isArray(value)) return []
  return value.filter(isObject).map((c) => ({ id: text(c.id), name: text(c.name), arguments: text(c.arguments) }))
}

function readSpeed(value: unknown): Speed | null {
  if (!isObject(value)) return null
  return {
    firstTokenMs: number(value.firstTokenMs),
    tokensPerSecond: number(value.tokensPerSecond),
    tokens: number(value.tokens) ?? 0,
    thinkingTokens: number(value.thinkingTokens) ?? 0,
    promptTokens: number(value.promptTokens),
    cachedTokens: number(value.cachedTokens),
    guessedTokens: number(value.guessedTokens),
    totalTokens: number(value.totalTokens),
  }
}

const readOthers = (list: unknown[]) =>
  list.filter(isObject).map((other) => ({ token: text(other.token), share: number(other.share) ?? 0 }))

function readHeat(value: unknown): Heat[] {
  if (!Array.isArray(value)) return []
  return value.filter(isObject).map((h) => ({
    token: text(h.token),
    certainty: number(h.certainty) ?? 1,
    entropy: number(h.entropy) ?? 0,
    ...(h.guessed === true ? { guessed: true } : {}),
    ...(h.chosen === true ? { chosen: true } : {}),
    ...(Array.isArray(h.others) ? { others: readOthers(h.others) } : {}),
    ...(Array.isArray(h.bytes) ? { bytes: h.bytes.map((byte) => number(byte) ?? 0) } : {}),
  }))
}

const OUTCOMES: Outcome[] = ['done', 'length', 'full', 'overlong', 'loop', 'stopped', 'lost', 'failed']

function readAnswer(value: Record<string, unknown>): Partial<Message> {
  const speed = readSpeed(value.speed)
  const heat = readHeat(value.heat)
  const run = readRun(value.run)
  const citations = readCitations(value.citations)
  const sources = objects(value.sources).map((s) => ({ source: text(s.source), text: text(s.text) }))
  return {
    outcome: OUTCOMES.find((outcome) => outcome === value.outcome) ?? 'done',
    ...(text(value.error) ? { error: text(value.error) } : {}),
    ...(speed ? { speed } : {}),
    ...(heat.length ? { heat } : {}),
    ...(sources.length ? { sources } : {}),
    ...(run ? { run } : {}),
    ...(citations.length ? { citations } : {}),
    ...(text(value.requestId) ? { requestId: text(value.requestId) } : {}),
    ...(value.thumb === 'up' || value.thumb === 'down' ? { thumb: value.thumb } : {}),
    ...(isObject(value.size) ? { size: { tokens: number(value.size.tokens), context: number(value.size.context) } } : {}),
  }
}

// What is imported is a copy, also of what is still here, and has names of its own.
type Namer = (name: unknown) => string
const anew: Namer = () => newId()
const asItIs: Namer = (name) => (typeof name === 'string' && /^\w{1,64}$/.test(name) ? name : newId())

function readMessage(value: unknown, nameOf: Namer): Message | null {
  if (!isObject(value)) return null
  const role = value.role
  if (role !== 'user' && role !== 'assistant' && role !== 'tool') return null
  const files = Array.isArray(value.files)
    ? value.files.filter(isObject).map((f) => ({ name: text(f.name), text: text(f.text) }))
    : []
  const calls = readCalls(value.toolCalls)
  return {
    id: nameOf(value.id),
    role,
    content: text(value.content),
    ...(text(value.reasoning) ? { reasoning: text(value.reasoning) } : {}),
    ...(files.length ? { files } : {}),
    ...(calls.length ? { toolCalls: calls } : {}),
    ...(role === 'tool' ? { toolCallId: text(value.toolCallId) } : {}),
    ...(role === 'assistant' ? readAnswer(value) : {}),
  }
}

// Reads messages and remembers which became which, since branches refer to them.
function readMessages(list: unknown[], names: Map<unknown, string>, nameOf: Namer): Message[] {
  return list.flatMap((value) => {
    const message = readMessage(value, nameOf)
    if (message && isObject(value)) names.set(value.id, message.id)
    return message ? [message] : []
  })
}

function readBranches(value: unknown, names: Map<unknown, string>, nameOf: Namer): Branch[] {
  if (!Array.isArray(value)) return []
  const read = value.filter(isObject).map((branch) => ({
    after: branch.after,
    place: number(branch.place) ?? 0,
    messages: readMessages(Array.isArray(branch.messages) ? branch.messages : [], names, nameOf),
    ...(number(branch.unsent) ? { unsent: number(branch.unsent)! } : {}),
  }))
  // Only now are all names known. A branch of nothing that is in the file has no place.
  return read
    .filter(({ after, messages }) => messages.length > 0 && (after === null || names.has(after)))
    .map((branch) => ({ ...branch, after: branch.after === null ? null : names.get(branch.after)! }))
}

const names = (value: unknown) => (Array.isArray(value) ? value.filter((name) => typeof name === 'string') : null)

function readOdo(value: unknown): OdoChoice | null {
  if (!isObject(value)) return null
  const collections = names(value.collections)
  const tools = names(value.tools)
  return {
    mode: text(value.mode),
    route: text(value.route),
    ...(collections ? { collections } : {}),
    ...(typeof value.web === 'boolean' ? { web: value.web } : {}),
    ...(tools ? { tools } : {}),
  }
}

function readConversation(value: unknown, nameOf = anew): Conversation | null {
  if (!isObject(value) || !Array.isArray(value.messages)) return null
  const names = new Map<unknown, string>()
  const messages = readMessages(value.messages, names, nameOf)
  const branches = readBranches(value.branches, names, nameOf)
  const odo = readOdo(value.odo)
  const time = (at: unknown) => (typeof at === 'number' && Number.isFinite(at) ? at : Date.now())
  return {
    id: nameOf(value.id),
    title: text(value.title),
    system: text(value.system),
    created: time(value.created),
    updated: time(value.updated),
    ...(odo ? { odo } : {}),
    messages,
    ...(number(value.unsent) ? { unsent: number(value.unsent)! } : {}),
    ...(branches.length ? { branches } : {}),
    ...(value.pinned === true ? { pinned: true } : {}),
  }
}

// One that comes from the server, or is compared with one that does: the same conversation, with its own names.
export const readKept = (value: unknown): Conversation | null => readConversation(value, asItIs)

export interface Export extends Library {
  conversations: Conversation[]
}

const NOTHING: Export = { conversations: [], presets: [], prompts: [] }

const named = (list: unknown) => (Array.isArray(list) ? list : []).filter(isObject).filter((one) => text(one.name))

function readLibrary(value: Record<string, unknown>): Library {
  return {
    prompts: named(value.prompts).map((p) => ({ name: promptName(text(p.name)), text: text(p.text) })),
    presets: named(value.presets).map((p) => ({
      name: text(p.name),
      system: text(p.system),
      thinking: p.thinking === 'on' || p.thinking === 'off' ? p.thinking : 'auto',
      thinkingMode: thinkingMode(p.thinkingMode),
      sampling: isObject(p.sampling)
        ? Object.fromEntries(Object.entries(p.sampling).filter(([, n]) => number(n) !== null))
        : {},
    })),
  }
}

function fromJson(source: string): Export {
  const value: unknown = JSON.parse(source)
  if (!isObject(value) || value.format !== FORMAT || !Array.isArray(value.conversations)) return NOTHING
  return { conversations: value.conversations.map((one) => readConversation(one)).filter((c) => c !== null), ...readLibrary(value) }
}

function fromMarkdownFile(source: string): Conversation[] {
  const [alone, ...pieces] = source.split(/^<!-- chimere:conversation(?: (.*))? -->$/m)
  if (!pieces.length) return fromMarkdown(alone!, {})
  return pieces.flatMap((head, i) => (i % 2 ? [] : fromMarkdown(pieces[i + 1]!, JSON.parse(head ?? '{}'))))
}

function fromMarkdown(source: string, head: object): Conversation[] {
  const title = /^# (.*)$/m.exec(source)?.[1] ?? ''
  const pieces = source.split(/^<!-- chimere:(\w+)(?: (.*))? -->$/m)
  let system = ''
  const messages: Record<string, unknown>[] = [] // of branches too; each one's name is its number
  const branches: Record<string, unknown>[] = []
  for (let i = 1; i + 2 < pieces.length; i += 3) {
    const [name, value, body] = [pieces[i]!, pieces[i + 1], unprotect(pieces[i + 2]!.replace(/^\n/, '').replace(/\n{1,2}$/, ''))]
    const last = messages.at(-1)
    if (name === 'system') system = body
    else if (name === 'user' || name === 'assistant' || name === 'tool') {
      messages.push({ id: messages.length, role: name, files: [], ...(value ? { toolCallId: JSON.parse(value) } : {}) })
    } else if (name === 'branch') {
      const branch = JSON.parse(value ?? '{}')
      branches.push({ ...branch, after: branch.after < 0 ? null : branch.after, from: messages.length })
    } else if (!last) continue
    else if (name === 'file') (last.files as object[]).push({ name: JSON.parse(value ?? '""'), text: body })
    else if (name === 'thinking') last.reasoning = body
    else if (name === 'text') last.content = body
    else if (name === 'calls') last.toolCalls = JSON.parse(value ?? '[]')
  }
  const until = (at: number) => (branches[at]?.from as number | undefined) ?? messages.length
  const ways = branches.map((branch, at) => ({ ...branch, messages: messages.slice(until(at), until(at + 1)) }))
  const conversation = readConversation({
    ...head,
    title,
    system,
    messages: messages.slice(0, until(0)),
    branches: ways,
  })
  return conversation && messages.length ? [conversation] : []
}

// What is in the file; empty when it is none of ours.
export function readExport(source: string): Export {
  try {
    return source.trimStart().startsWith('{')
      ? fromJson(source)
      : { ...NOTHING, conversations: fromMarkdownFile(source) }
  } catch {
    return NOTHING
  }
}

export function download(name: string, type: string, content: string) {
  const url = URL.createObjectURL(new Blob([content], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 1000)
}

export const fileName = (title: string) =>
  title
    .normalize('NFKD')
    .replace(/[^\w]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .toLowerCase()
    .slice(0, 50) || 'conversation'
