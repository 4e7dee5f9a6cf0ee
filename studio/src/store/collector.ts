// collector.ts  The text of an answer while it comes: collects what the server sends and publishes it once a frame.
import { signal } from '@preact/signals'
import type { ChatChunk, Logprob, TokenStats, ToolCallDelta } from '../api/types'
import type { Heat, Message, Source, Speed, ToolCall } from './conversations'
import { addToRun, readAnnotations, runAfter, type Citation, type Run } from './run'
import { isWhole } from './tokens'

export interface LiveText {
  content: string
  reasoning: string
  toolCalls: ToolCall[]
  speed: Speed
  heat: Heat[]
  sources: Source[]
  run: Run | null
  citations: Citation[]
  isThinking: boolean
  read: number | null // of a prompt that is being read, the part that is, 0 to 1
}

export const NO_SPEED: Speed = {
  firstTokenMs: null,
  tokensPerSecond: null,
  tokens: 0,
  thinkingTokens: 0,
  promptTokens: null,
  cachedTokens: null,
  guessedTokens: null,
  totalTokens: null,
}

export class Collector {
  private next: LiveText = {
    content: '',
    reasoning: '',
    toolCalls: [],
    isThinking: false,
    heat: [],
    sources: [],
    run: null,
    citations: [],
    read: null,
    speed: NO_SPEED,
  }
  readonly text = signal<LiveText>(this.next)
  finish: string | null = null
  private readonly began = performance.now()
  private firstAt = 0
  private before = { tokens: 0, thinkingTokens: 0 }
  private earlierRun: Run | undefined
  private run: Run | null = null
  private frame = 0

  // `begun`: an answer that goes on keeps what it has.
  constructor(begun: Message | null) {
    if (!begun) return
    const { content, reasoning = '', heat = [], run, citations = [], speed } = begun
    this.earlierRun = run
    this.before = { tokens: speed?.tokens ?? 0, thinkingTokens: speed?.thinkingTokens ?? 0 }
    const kept = { content, reasoning, heat, run: run ?? null, citations }
    this.next = { ...this.next, ...kept, speed: { ...this.next.speed, ...this.before } }
    this.text.value = this.next
  }

  add(chunk: ChatChunk) {
    const choice = chunk.choices?.[0]
    const { content, reasoning_content: reasoning, tool_calls: calls } = choice?.delta ?? {}
    if (content || reasoning || calls) this.count(!!reasoning)
    const { total, processed } = chunk.prompt_progress ?? {}
    if (total && processed !== undefined) this.next = { ...this.next, read: processed / total }
    if (content) this.next = { ...this.next, content: this.next.content + content, isThinking: false }
    if (reasoning) this.next = { ...this.next, reasoning: this.next.reasoning + reasoning, isThinking: true }
    if (calls) this.next = { ...this.next, toolCalls: merge(this.next.toolCalls, calls), isThinking: false }
    const heat = (choice?.token_stats ?? []).map((stats, i) => heatOf(stats, choice?.logprobs?.content?.[i]))
    if (heat.length) this.next = { ...this.next, heat: [...this.next.heat, ...heat] }
    const { notes = [], passages = [] } = chunk.engram ?? {}
    const sources = [...notes, ...passages].map(({ source, text }) => ({ source, text }))
    if (sources.length) this.next = { ...this.next, sources }
    if (chunk.odo) this.addSteps(chunk.odo)
    const cited = readAnnotations(choice?.delta?.annotations ?? choice?.message?.annotations)
    if (cited.length) this.next = { ...this.next, citations: [...this.next.citations, ...cited] }
    if (choice?.finish_reason) this.finish = choice.finish_reason
    if (chunk.usage) this.settle(chunk)
    this.publishSoon()
  }

  private addSteps(told: unknown) {
    const run = addToRun(this.run, told)
    if (!run) return
    this.run = { ...run, ms: performance.now() - this.began }
    this.next = { ...this.next, run: runAfter(this.earlierRun, this.run) }
  }

  // One delta is one token nearly always; the usage at the end has the true count.
  private count(isThought: boolean) {
    const now = performance.now()
    const speed = { ...this.next.speed }
    if (speed.firstTokenMs === null) {
      this.firstAt = now
      speed.firstTokenMs = now - this.began
    }
    speed.tokens++
    if (isThought) speed.thinkingTokens++
    const written = speed.tokens - this.before.tokens
    if (written > 1) speed.tokensPerSecond = ((written - 1) * 1000) / Math.max(1, now - this.firstAt)
    this.next = { ...this.next, speed }
  }

  private settle({ usage, timings }: ChatChunk) {
    if (!usage) return
    const speed = this.next.speed
    const tokens = usage.completion_tokens
    const thought = usage.completion_tokens_details?.reasoning_tokens
    const measured = tokens > 1 ? ((tokens - 1) * 1000) / Math.max(1, performance.now() - this.firstAt) : null
    this.next = {
      ...this.next,
      speed: {
        ...speed,
        tokens: this.before.tokens + tokens,
        tokensPerSecond: timings?.generated_per_second ?? measured,
        thinkingTokens: thought === undefined ? speed.thinkingTokens : this.before.thinkingTokens + thought,
        promptTokens: usage.prompt_tokens,
        cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? null,
        guessedTokens: timings?.draft_n_accepted ?? null,
        // A run may have asked the model several times: their sum says nothing of the context.
        totalTokens: this.run ? null : usage.prompt_tokens + tokens,
      },
    }
  }

  // A hidden page gets no frames, and none are needed there.
  private publishSoon() {
    if (!this.frame && !document.hidden) this.frame = requestAnimationFrame(() => this.publish())
  }

  publish(): LiveText {
    cancelAnimationFrame(this.frame)
    this.frame = 0
    this.next = { ...this.next }
    this.text.value = this.next
    return this.next
  }
}

const SHARE_DIGITS = 4

function heatOf({ token, certainty, entropy, guessed }: TokenStats, drawn: Logprob | undefined): Heat {
  const share = (logprob: number) => Number(Math.exp(logprob).toFixed(SHARE_DIGITS))
  const others = drawn?.top_logprobs?.map((other) => ({ token: other.token, share: share(other.logprob) })) ?? []
  return {
    token,
    certainty: certainty ?? 1,
    entropy: entropy ?? 0,
    ...(guessed ? { guessed } : {}),
    ...(others.length ? { others } : {}),
    ...(drawn?.bytes && !isWhole(token) ? { bytes: drawn.bytes } : {}),
  }
}

function merge(calls: ToolCall[], deltas: ToolCallDelta[]): ToolCall[] {
  const merged = [...calls]
  for (const delta of deltas) {
    const old = merged[delta.index] ?? { id: '', name: '', arguments: '' }
    merged[delta.index] = {
      id: delta.id ?? old.id,
      name: old.name + (delta.function?.name ?? ''),
      arguments: old.arguments + (delta.function?.arguments ?? ''),
    }
  }
  // Where numbers were left out there is nothing to show.
  return merged.filter((call) => call !== undefined)
}
