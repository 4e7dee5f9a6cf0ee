// types.ts  What the server sends, as far as the page reads it. Everything optional may be missing on an older server.

export interface Health {
  status: string
  model: string
}

export interface ModelEntry {
  id: string
  context_length?: number
  capabilities?: string[]
  parent?: string // of another name for a model of the list: the orchestrator's
  status?: ModelStatus // on a server with a folder of models
}

export interface ModelStatus {
  value: 'unloaded' | 'loading' | 'loaded' | 'failed'
  progress?: number // 0 to 1
  error?: string
}

export interface ErrorBody {
  message?: string
  code?: string | number | null
  n_prompt_tokens?: number // where the prompt is too long
  n_ctx?: number
}

// What the server keeps of prompts it has computed.
export interface Cache {
  directory: string | null // on disk; null where there is none, or it is not told
  bytes: number // on disk
  limit_bytes: number // 0: none on disk
  entries: number
  memory_bytes: number
}

export interface Cleared {
  cleared_bytes: number
  cleared_entries: number
}

export interface Usage {
  prompt_tokens: number
  completion_tokens: number
  prompt_tokens_details?: { cached_tokens?: number }
  completion_tokens_details?: { reasoning_tokens?: number }
}

export interface Timings {
  queue_ms?: number
  prefill_ms?: number
  decode_ms?: number
  prompt_per_second?: number
  generated_per_second?: number
  draft_n?: number
  draft_n_accepted?: number
}

export interface ToolCallDelta {
  index: number
  id?: string
  function?: { name?: string; arguments?: string }
}

// How sure the model was of a token, 0 to 1; entropy in nats.
export interface TokenStats {
  token: string
  entropy: number | null
  certainty: number | null
  guessed?: boolean // ahead, and right
}

export interface Logprob {
  token: string
  logprob: number
  bytes?: number[] | null
  top_logprobs?: { token: string; logprob: number }[]
}

export interface ChatChunk {
  choices?: {
    delta?: {
      content?: string | null
      reasoning_content?: string | null
      tool_calls?: ToolCallDelta[]
      annotations?: unknown // read by store/run.ts, as `odo` is
    }
    message?: { annotations?: unknown }
    finish_reason?: string | null
    token_stats?: TokenStats[]
    logprobs?: { content?: Logprob[] | null } | null // of the same tokens, where both are asked for
  }[]
  usage?: Usage | null
  timings?: Timings | null
  engram?: EngramUse
  odo?: unknown
  prompt_progress?: { total: number; cache: number; processed: number }
  error?: ErrorBody
}

// What an answer was given to read.
export interface EngramUse {
  passages?: { source: string; score: number; text: string }[]
  notes?: { source: string; score: number; text: string; id?: number }[]
}

export interface Adapter {
  name: string
  scale: number
  use?: 'answer' | 'judge'
}

export interface Memory {
  tables: { name: string }[]
  passages: string[]
  own: { notes: number; bytes: number } | null
  limits?: { own: { bytes: number; notes: number } } // missing where nothing can be taught
}

export interface Note {
  id: number
  source: string
  created: number // seconds
  score: number
  text: string
}

export interface Layer {
  mixer: string
  ffn: string
}

export interface ModelCard {
  name: string
  architecture: string
  backend: string
  file_bytes: number
  parameters: number
  context_length: number
  vocabulary: number
  experts: number
  experts_used: number
  thinking: boolean
  tools: boolean
  layers: Layer[]
  formats: { type: string; tensors: number; bytes: number }[]
}

interface GuessCount {
  draft_tokens: number
  accepted_tokens: number
}

export interface GuessSource extends GuessCount {
  source: string
  by_position: GuessCount[]
}

export interface Speculation {
  mode: string
  drafts: number
  draft_tokens: number
  accepted_tokens: number
  mean_accepted_length?: number // of drafts, where there was one
  draft_time_share?: number // where the costs of steps are known
  draft_gain?: number
  mtp?: { loaded: boolean; draft_tokens: number; accepted_tokens: number; guess_ms?: number }
  draft_model?: { name: string; rows: number; guess_ms?: number }
  sources?: GuessSource[]
  step_ms: { rows: number; ms: number }[]
}

export interface TokenCounts {
  prompt: number
  cached: number
  generated: number
}

export interface KeyTokens {
  name: string | null // null: the server has no keys
  today: TokenCounts
  all: TokenCounts
  tokens_per_day: number | null
}

// Of a server with a folder of models.
export interface FolderModel {
  name: string
  state: ModelStatus['value']
  file_bytes: number
  progress?: number // 0 to 1
  error?: string
  ram_bytes?: number // of a loaded one
  vram_bytes?: number
  users?: number // answers under way
  options?: Record<string, string> // that it has of its own
  has_new_options?: boolean // which it has from its next loading on
}

// What a server says of itself, whether a model is loaded or not.
export interface Overview {
  version: string
  uptime_seconds: number
  keys?: KeyTokens[]
  models?: FolderModel[]
}

export interface Status extends Overview {
  model: ModelCard
  is_sleeping?: boolean
  load: { running: number; queued: number; max_running: number; max_queued: number; batch_rows: number }
  tokens: {
    prompt_total: number
    prompt_reused_total: number
    generated_total: number
    prompt_per_second: number
    generated_per_second: number
  }
  speculation?: Speculation
  cache: {
    lookups: number
    hits: number
    tokens_reused: number
    tokens_computed: number
    misses: Record<string, number>
    ram_bytes: number
    disk_bytes: number
    budget_bytes: number
    entries: number
  }
  memory: { purpose: string; bytes: number }[]
  experts_in_ram?: { count: number; slots: number; hits: number; misses: number; bytes_read: number }
  experts_on_disk?: { bytes: number; ram_bytes: number; hits: number; misses: number; bytes_read: number }
}

export interface RunningRequest {
  id: string
  model?: string
  state: 'loading' | 'queued' | 'prefill' | 'decode'
  thinking: boolean
  prompt_tokens: number
  cached_tokens: number
  completion_tokens: number
  age_seconds: number
  user: string | null
}

// Of /v1/odo.
export interface OdoRoute {
  name: string // for people
  tools?: string[]
  tools_on_cue?: string[]
  collections?: string[]
  web?: boolean
  thinking?: boolean | null
  engram?: string[]
  lora?: string | null
  steps?: string[]
}

export interface OdoStatus {
  modes?: string[]
  routes: Record<string, OdoRoute>
  problems?: Record<string, string> // by file
  web?: boolean // there is a server to search the web with
  mcp_servers?: McpServer[]
}

export type Policy = 'allow' | 'ask' | 'deny'

// A server of tools.
export interface McpServer {
  name: string
  state: 'running' | 'failed'
  server: string // what it calls itself, with its version
  policy: Policy // of its tools, where none has its own
  tools: string[]
  problem: string // why it does not run, or what of it was left out
}

export interface OdoTool {
  name: string
  description: string
  policy: Policy
}

// Of /v1/collections.
export interface Collection {
  name: string
  documents: number
  chunks: number
  bytes: number // of text
}

export interface CollectionList {
  data: Collection[]
  used: { documents: number; chunks: number; bytes: number }
  limits: { collections: number; documents: number; chunks: number; bytes: number; document_bytes: number }
}

export interface CollectionDocument {
  name: string
  title: string
  kind: string
  bytes: number
  chunks: number
  created_at: number // seconds
}

// One that was sent just now.
export interface AddedDocument extends CollectionDocument {
  status: 'added' | 'replaced' | 'unchanged'
}

export interface Passage {
  document: string
  title: string
  heading: string
  place: string
  score: number
  ranks: { words: number; vectors: number } // from 1; 0: not found so
  text: string
}

// Of /v1/conversations.
export interface ConversationEntry {
  id: string
  revision: number
  bytes: number
}

export interface ConversationList {
  store: string // another name: another collection, of which nothing is known
  revision: number
  data: ConversationEntry[]
  bytes: number
  limits: { count: number; bytes: number }
}

// Whether answers are kept to learn from, and how many.
export interface Learning {
  mode: 'off' | 'ask' | 'on'
  agreed: boolean | null // null: was not asked yet
  keeps: boolean
  answers: number
  feedback: number
  bytes?: number
}

export interface ImproveGain {
  n: number
  mean: number
  low: number
  high: number
}

// One try to become better.
export interface ImproveRun {
  id: string
  kind: string
  state: 'running' | 'proven' | 'refused' | 'skipped' | 'failed' | 'stopped' | 'done'
  problem: string
  about: string
  created: number
  artefact: string
  learned_from: string[]
  examples: number
  held_out: number
  verdict: { proven: boolean; reason: string; gain: ImproveGain }
  cost: { seconds: number; cpu_seconds: number; joules: number | null }
  progress: { done: number; total: number }
}

export interface Improve {
  in_use: { kind: string; route: string; versions: { artefact: string; since: number; run: string }[] }[]
  runs: ImproveRun[] // the newest first
  running: { kind: string | null; own: boolean; paused: boolean } | null
  waiting: number
  schedule: Record<string, { when: string; next: number | null }>
}

// One word about an answer.
export type FeedbackBody = { user?: string; request_id: string } & (
  | { thumb: 'up' | 'down' | 'none' }
  | { correction: string }
  | { sign: 'copied' | 'regenerated' | 'edited' }
)
