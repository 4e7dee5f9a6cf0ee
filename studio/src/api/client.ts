// client.ts  The only place that talks to the server: keys, errors, and whether it answers at all.
import { admission } from '../store/pairing'
import { askForKey, apiKey, forgetKey, markOffline, markOnline } from '../store/session'
import { events } from './sse'
import type {
  Adapter,
  Cache,
  ChatChunk,
  Cleared,
  CollectionDocument,
  CollectionList,
  ConversationEntry,
  ConversationList,
  ErrorBody,
  FeedbackBody,
  Health,
  Improve,
  Learning,
  Memory,
  ModelEntry,
  Note,
  OdoStatus,
  OdoTool,
  Overview,
  Passage,
  RunningRequest,
  Status,
} from './types'

// The server answered, with an error. `message` is the server's own.
export class ApiError extends Error {
  readonly code: string
  readonly promptTokens: number | null
  readonly context: number | null

  constructor(
    readonly status: number,
    { message = 'error', code, n_prompt_tokens, n_ctx }: ErrorBody,
  ) {
    super(message)
    this.code = String(code ?? '')
    this.promptTokens = n_prompt_tokens ?? null
    this.context = n_ctx ?? null
  }
}

// The server did not answer, or broke off.
export class ConnectionLost extends Error {}

const isAbort = (error: unknown) => error instanceof DOMException && error.name === 'AbortError'

export function errorIn(text: string, status: number, statusText: string): ApiError {
  try {
    const error = JSON.parse(text)?.error
    if (typeof error?.message === 'string') return new ApiError(status, error)
  } catch {
    // not JSON: a proxy's page, most likely
  }
  return new ApiError(status, { message: `${status} ${statusText}` })
}

const errorOf = async (response: Response) =>
  errorIn(await response.text().catch(() => ''), response.status, response.statusText)

async function request(path: string, init: RequestInit = {}): Promise<Response> {
  await admission
  for (;;) {
    const headers = new Headers(init.headers)
    const key = apiKey()
    if (key) headers.set('Authorization', `Bearer ${key}`)
    let response: Response
    try {
      response = await fetch(path, { ...init, headers, cache: 'no-store' })
    } catch (error) {
      if (isAbort(error)) throw error
      markOffline()
      throw new ConnectionLost()
    }
    markOnline()
    if (response.ok || response.status === 304) return response
    const error = await errorOf(response)
    if (response.status !== 401) throw error
    forgetKey(key)
    if (!(await askForKey(key !== null))) throw error
  }
}

const json = async <T>(path: string, init?: RequestInit): Promise<T> => (await request(path, init)).json() as Promise<T>

const post = <T>(path: string, body: object) =>
  json<T>(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })

export const health = () => json<Health>('/health')
export const models = async () => (await json<{ data: ModelEntry[] }>('/v1/models')).data
export const status = () => json<Status | Overview>('/v1/status')
export const loadModel = (model: string) => post<unknown>('/models/load', { model })
export const unloadModel = (model: string) => post<unknown>('/models/unload', { model })
// Null: nothing has changed since the list of this tag.
export async function listConversations(tag: string) {
  const response = await request('/v1/conversations', { headers: tag ? { 'If-None-Match': tag } : {} })
  if (response.status === 304) return null
  const list = (await response.json()) as ConversationList
  return { ...list, tag: response.headers.get('ETag') ?? '' }
}

const conversationPath = (id: string) => `/v1/conversations/${encodeURIComponent(id)}`
// What must hold there for a change to be made: it is at this revision; with 0, there is none.
const onlyAt = (revision: number): Record<string, string> =>
  revision ? { 'If-Match': `"${revision}"` } : { 'If-None-Match': '*' }

export async function readConversation(id: string) {
  const response = await request(conversationPath(id))
  const revision = Number(response.headers.get('ETag')?.replaceAll('"', ''))
  return { revision, value: (await response.json()) as unknown }
}
export const writeConversation = async (id: string, text: string, revision: number) => {
  const headers = { 'Content-Type': 'application/json', ...onlyAt(revision) }
  return (await json<ConversationEntry>(conversationPath(id), { method: 'PUT', headers, body: text })).revision
}
export const deleteConversation = (id: string, revision: number) =>
  json<unknown>(conversationPath(id), { method: 'DELETE', headers: onlyAt(revision) })
export const deleteAllConversations = () => json<unknown>('/v1/conversations', { method: 'DELETE' })

export const cache = () => json<Cache>('/v1/cache')
export const clearCache = () => json<Cleared>('/v1/cache', { method: 'DELETE' })
export const sleep = () => post<unknown>('/sleep', {})
export const wakeUp = () => post<unknown>('/wake_up', {})
export const countTokens = async (body: object) => (await post<{ count: number }>('/tokenize', body)).count
// Those that an answer can have; the judge of answers is none.
export const adapters = async () =>
  (await json<{ data: Adapter[] }>('/v1/lora')).data.filter((adapter) => adapter.use !== 'judge')
const ofUser = (user: string) => `?user=${encodeURIComponent(user)}`
export const memory = (user: string) => json<Memory>(`/v1/engram${ofUser(user)}`)
export const notes = async (user: string) => (await json<{ data: Note[] }>(`/v1/engram/notes${ofUser(user)}`)).data
export const learn = (body: object) => post<{ learned: boolean; note?: number }>('/v1/engram/accept', body)
export const forget = (body: object) => post<unknown>('/v1/engram/forget', body)
const ofOwner = (user: string | undefined) => (user === undefined ? '' : ofUser(user))
export const learning = (user: string | undefined) => json<Learning>(`/v1/learning${ofOwner(user)}`)
export const agreeToLearning = (body: { user?: string; agreed: boolean }) =>
  json<Learning>('/v1/learning', {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
export const eraseLearned = (user: string | undefined) =>
  json<{ answers: number }>(`/v1/learning${ofOwner(user)}`, { method: 'DELETE' })
export const improve = (user: string | undefined) => json<Improve>(`/v1/improve${ofOwner(user)}`)
export const startImproving = (body: { user?: string; kind: string }) => post<unknown>('/v1/improve/runs', body)
export const rollBack = (body: { user?: string; kind: string }) => post<unknown>('/v1/improve/rollback', body)
export const promote = (body: { user?: string; run: string; anyway?: boolean }) => post<unknown>('/v1/improve/promote', body)
export const forgetLearned = (body: { user?: string; conversation?: string; all?: boolean }) =>
  post<{ answers: number }>('/v1/improve/forget', body)
export const feedback = (body: FeedbackBody) => post<unknown>('/v1/feedback', body)
export const odoStatus = () => json<OdoStatus>('/v1/odo/status')
// Those that are denied, too: people see them, models do not.
export async function odoTools(): Promise<OdoTool[]> {
  const { data, denied = [] } = await json<{ data: OdoTool[]; denied?: OdoTool[] }>('/v1/odo/tools')
  return [...data, ...denied]
}
export const odoTraces = async () => (await json<{ data: unknown }>('/v1/odo/traces')).data
export const answerApproval = (id: string, allow: boolean) =>
  post<unknown>(`/v1/odo/approvals/${encodeURIComponent(id)}`, { allow })

export const collectionPath = (name: string, what = '') => `/v1/collections/${encodeURIComponent(name)}${what}`
export const collections = () => json<CollectionList>('/v1/collections')
export const makeCollection = (name: string) => post<unknown>('/v1/collections', { name })
export const deleteCollection = (name: string) => json<unknown>(collectionPath(name), { method: 'DELETE' })
export const documents = async (name: string) =>
  (await json<{ data: CollectionDocument[] }>(collectionPath(name, '/documents'))).data
export const deleteDocument = (name: string, document: string) =>
  json<unknown>(collectionPath(name, `/documents?name=${encodeURIComponent(document)}`), { method: 'DELETE' })
export const searchCollection = async (name: string, query: string) =>
  (await post<{ data: Passage[] }>(collectionPath(name, '/search'), { query })).data

export const requests = async () => (await json<{ data: RunningRequest[] }>('/v1/requests')).data

const act = (id: string, action: string) =>
  json<unknown>(`/v1/requests/${encodeURIComponent(id)}/${action}`, { method: 'POST' })
export const cancel = (id: string) => act(id, 'cancel')
export const stopThinking = (id: string) => act(id, 'stop_thinking')

export interface ChatStream {
  requestId: string | null
  chunks: AsyncGenerator<ChatChunk>
}

export async function streamChat(body: object, signal: AbortSignal): Promise<ChatStream> {
  const response = await request('/v1/chat/completions', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true, return_progress: true, stream_options: { include_usage: true } }),
    signal,
  })
  return { requestId: response.headers.get('X-Request-Id'), chunks: chunksOf(response) }
}

async function* chunksOf(response: Response): AsyncGenerator<ChatChunk> {
  let isComplete = false
  try {
    if (response.body) {
      for await (const data of events(response.body)) {
        if (data === '[DONE]') {
          isComplete = true
          break
        }
        const chunk = JSON.parse(data) as ChatChunk
        if (chunk.error) throw new ApiError(200, chunk.error)
        yield chunk
      }
    }
  } catch (error) {
    if (isAbort(error) || error instanceof ApiError) throw error
    throw new ConnectionLost()
  }
  if (!isComplete) throw new ConnectionLost()
}
