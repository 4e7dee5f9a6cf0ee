// run.ts  What the orchestrator did for an answer: its steps, as the server tells them and as they are kept with the
// answer. Both have the same form, so that one reader does for both.
import { isObject, number, objects, text } from './read'

const STATES = ['running', 'asks', 'done', 'failed', 'skipped'] as const
export type StepState = (typeof STATES)[number]

// What an answer rests on: a page, a file, a passage.
export interface Citation {
  n?: number // as the answer counts
  title: string
  url?: string
  snippet?: string
  document?: string // of a file: its name, and the collection that has it
  collection?: string
}

// A way in which an answer could have gone: what a search tried.
export interface Branch {
  text: string // of its answer; '': it has none yet
  score: number | null // 0 to 1; null: not judged yet
  why: string
  isChosen: boolean
  steps: { text: string; score: number }[]
}

export interface StepDetail {
  tool: string // '': of a step that calls none
  arguments: string // JSON
  result?: string
  is_untrusted?: boolean // the result comes from pages, files or other programs
  approval_id?: string
  sources?: Citation[]
  branches?: Branch[]
}

export interface Step {
  index: number
  stage: string
  state: StepState
  about: string
  ms: number
  tokens: number
  detail?: StepDetail
}

export interface Run {
  id: string
  route: string
  mode: string // '': none was asked for
  ms: number
  steps: Step[]
}

export interface Trace extends Run {
  created: number // seconds
  tokens: number
  finish: string // a word, or what went wrong
}

const MAX_STEPS = 1000
const NO_RUN: Run = { id: '', route: '', mode: '', ms: 0, steps: [] }

function readCitation(value: Record<string, unknown>): Citation[] {
  const url = text(value.url)
  const snippet = text(value.snippet) || text(value.quote)
  const title = text(value.title) || text(value.filename) || text(value.document) || url || text(value.file_id)
  const n = number(value.n)
  const file = { document: text(value.document), collection: text(value.collection) }
  if (!title) return []
  return [
    {
      ...(n === null ? {} : { n }),
      title,
      ...(url ? { url } : {}),
      ...(snippet ? { snippet } : {}),
      ...(file.document && file.collection ? file : {}),
    },
  ]
}

export const readCitations = (value: unknown) => objects(value).flatMap(readCitation)

// OpenAI's: {"type": "url_citation", "url_citation": {…}}, or all in one object.
export const readAnnotations = (value: unknown) =>
  objects(value).flatMap((annotation) => {
    const type = text(annotation.type)
    if (type !== 'url_citation' && type !== 'file_citation') return []
    const inner = annotation[type]
    return readCitation(isObject(inner) ? inner : annotation)
  })

const MAX_BRANCHES = 64

const readBranches = (value: unknown): Branch[] =>
  objects(value)
    .slice(0, MAX_BRANCHES)
    .map((branch) => ({
      text: text(branch.text),
      score: number(branch.score),
      why: text(branch.why),
      isChosen: branch.chosen === true || branch.isChosen === true,
      steps: objects(branch.steps)
        .slice(0, MAX_BRANCHES)
        .map((step) => ({ text: text(step.text), score: number(step.score) ?? 0 })),
    }))

function readDetail(value: unknown): StepDetail | null {
  if (!isObject(value)) return null
  const sources = [value, value.detail].flatMap((part) => (isObject(part) ? readCitations(part.sources) : []))
  const branches = readBranches(value.branches)
  const given = value.arguments
  return {
    tool: text(value.tool),
    arguments: typeof given === 'string' ? given : given === undefined ? '' : JSON.stringify(given),
    ...(typeof value.result === 'string' ? { result: value.result } : {}),
    ...(value.is_untrusted === true ? { is_untrusted: true } : {}),
    ...(text(value.approval_id) ? { approval_id: text(value.approval_id) } : {}),
    ...(sources.length ? { sources } : {}),
    ...(branches.length ? { branches } : {}),
  }
}

function readStep(value: Record<string, unknown>): Step[] {
  const index = number(value.index)
  if (index === null || index < 0 || index >= MAX_STEPS) return []
  const detail = readDetail(value.detail)
  return [
    {
      index,
      stage: text(value.stage),
      state: STATES.find((state) => state === value.state) ?? 'done',
      about: text(value.about),
      ms: number(value.ms) ?? 0,
      tokens: number(value.tokens) ?? 0,
      ...(detail ? { detail } : {}),
    },
  ]
}

// A step that is told again stands for what was told of it before.
export function addToRun(run: Run | null, value: unknown): Run | null {
  if (!isObject(value)) return run
  const before = run ?? NO_RUN
  const steps = new Map(before.steps.map((step) => [step.index, step]))
  for (const step of objects(value.steps).flatMap(readStep)) steps.set(step.index, step)
  return {
    id: text(value.id) || before.id,
    route: text(value.route) || before.route,
    mode: text(value.mode) || before.mode,
    ms: number(value.ms) ?? before.ms,
    steps: [...steps.values()].sort((a, b) => a.index - b.index),
  }
}

export const readRun = (value: unknown) => addToRun(null, value)

export function readTrace(value: Record<string, unknown>): Trace {
  const usage = isObject(value.usage) ? value.usage : {}
  return {
    ...(readRun(value) ?? NO_RUN),
    created: number(value.created) ?? 0,
    tokens: (number(usage.prompt_tokens) ?? 0) + (number(usage.completion_tokens) ?? 0),
    finish: text(value.finish),
  }
}

// An answer that goes on has the steps of all its runs, one after the other.
export function runAfter(before: Run | undefined, run: Run | null): Run | null {
  if (!before || !run) return run ?? before ?? null
  const first = (before.steps.at(-1)?.index ?? -1) + 1
  const later = run.steps.map((step) => ({ ...step, index: step.index + first }))
  return { ...run, ms: before.ms + run.ms, steps: [...before.steps, ...later] }
}

// All that an answer rests on, in the order in which it was told. What has a number stays, as the answer may name it; of
// the others those that are there already are left out.
export function citationsOf(run: Run | null | undefined, annotations: Citation[] = []): Citation[] {
  const all = [...(run?.steps.flatMap((step) => step.detail?.sources ?? []) ?? []), ...annotations]
  const seen = new Set<string>()
  return all.filter(({ n, url, title }) => {
    const name = url ?? title
    const isNew = n !== undefined || !seen.has(name)
    seen.add(name)
    return isNew
  })
}

// The number that each is shown with: its own, or the one behind the last.
export function numbersOf(list: Citation[]): number[] {
  let last = 0
  return list.map(({ n }) => (last = n ?? last + 1))
}

const line = (words: string) => words.replace(/\s+/g, ' ').trim()

// For a file that people read.
export const runMarkdown = ({ route, mode, steps }: Run) =>
  [
    `Route ${route}${mode && `, ${mode}`}`,
    ...steps.map(({ stage, state, about, ms }) => {
      const how = state === 'done' ? '' : `${state}, `
      return `- ${line(stage)}${about && `: ${line(about)}`} (${how}${Math.round(ms)} ms)`
    }),
  ].join('\n')

export const citationsMarkdown = (list: Citation[]) =>
  list.map(({ n, title, url }, i) => `${n ?? i + 1}. ${line(title)}${url ? ` <${line(url)}>` : ''}`).join('\n')
