// history.ts  What the status said in the last minutes, as columns that a plot can draw.
import { signal } from '@preact/signals'
import * as api from '../api/client'
import type { Overview, RunningRequest, Status } from '../api/types'

const SAMPLES = 300
const PERIOD_MS = 1000

export interface Sample {
  at: number // seconds since 1970
  promptRate: number
  generatedRate: number
  running: number
  queued: number
  batchRows: number
  reusePercent: number | null // of the prompt tokens since the sample before; null: there were none
  memory: Record<string, number>
}

export const overview = signal<Overview | null>(null)
export const latest = signal<Status | null>(null) // null: no model is loaded, too
export const runningRequests = signal<RunningRequest[]>([])
export const samples = signal<Sample[]>([])
export const isMissing = signal(false)

function reuseSince(before: Status | null, now: Status): number | null {
  const reused = now.cache.tokens_reused - (before?.cache.tokens_reused ?? 0)
  const computed = now.cache.tokens_computed - (before?.cache.tokens_computed ?? 0)
  // After a restart of the server the totals start again.
  if (reused < 0 || computed < 0 || reused + computed === 0) return null
  return (100 * reused) / (reused + computed)
}

// Tokens a second since the sample before. The server's own rates are means of its last seconds, in which an answer
// that has ended still counts: they serve where there is no sample of just now, and something runs.
function ratesSince(before: Status | null, now: Status): { prompt: number; generated: number } {
  const seconds = now.uptime_seconds - (before?.uptime_seconds ?? 0)
  if (before && seconds > 0 && seconds < 5 * (PERIOD_MS / 1000)) {
    const rate = (name: 'prompt_total' | 'generated_total') =>
      Math.max(0, now.tokens[name] - before.tokens[name]) / seconds
    return { prompt: rate('prompt_total'), generated: rate('generated_total') }
  }
  if (now.load.running === 0) return { prompt: 0, generated: 0 }
  return { prompt: now.tokens.prompt_per_second, generated: now.tokens.generated_per_second }
}

function record(status: Status) {
  const rates = ratesSince(latest.value, status)
  const sample: Sample = {
    at: Date.now() / 1000,
    promptRate: rates.prompt,
    generatedRate: rates.generated,
    running: status.load.running,
    queued: status.load.queued,
    batchRows: status.load.running ? status.load.batch_rows : 0,
    reusePercent: reuseSince(latest.value, status),
    memory: Object.fromEntries(status.memory.map((m) => [m.purpose, m.bytes])),
  }
  samples.value = [...samples.value, sample].slice(-SAMPLES)
  latest.value = status
}

export async function refresh() {
  try {
    const [status, requests] = await Promise.all([api.status(), api.requests()])
    overview.value = status
    if ('model' in status) record(status)
    else latest.value = null
    runningRequests.value = requests
    isMissing.value = false
  } catch (error) {
    if (error instanceof api.ApiError) isMissing.value = true
  }
}

// Asks once a second while somebody looks; returns how to stop.
export function watchStatus(): () => void {
  let isOver = false
  const loop = async () => {
    while (!isOver) {
      if (!document.hidden) await refresh()
      await new Promise((resolve) => setTimeout(resolve, PERIOD_MS))
    }
  }
  void loop()
  return () => {
    isOver = true
  }
}
