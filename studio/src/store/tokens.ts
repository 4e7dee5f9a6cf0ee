// tokens.ts  Where the tokens of an answer are in its text. They are bytes: a letter may be cut into two of them, the
// thought and what steers the model are tokens too, and the server leaves out the blanks before an answer.
import type { Heat, Message } from './conversations'

const THOUGHT = /^\s*[<[](\/?)(?:think|thinking|thought|reasoning)[>\]]\s*$/i
const CONTROL = /^\s*<(?:\|(.+)\||(\/?tool_call))>\s*$/

export type Mark = { kind: 'thought'; isEnd: boolean } | { kind: 'control'; name: string }

// What a token that is no text means.
export function markOf(token: string): Mark | null {
  const thought = THOUGHT.exec(token)
  if (thought) return { kind: 'thought', isEnd: thought[1] !== '' }
  const control = CONTROL.exec(token)
  return control && { kind: 'control', name: (control[1] ?? control[2]!).replace(/_/g, ' ') }
}

// Whether it is whole letters.
export const isWhole = (token: string) => !token.includes('\ufffd')

const encoder = new TextEncoder()

function textOf(heat: Heat[]): string | null {
  const bytes = heat.flatMap(({ token, bytes }) => bytes ?? [...encoder.encode(token)])
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(bytes))
  } catch {
    return null
  }
}

// What comes before a token: of the thought, or of the text behind it.
export interface Before {
  isThought: boolean
  text: string
}

// Of a part of the tokens, the text before the one at `at`. Null where the text cannot go on from: before it begins,
// inside a letter, or where the tokens are not those of the text.
function before(text: string, part: Heat[], at: number): string | null {
  const [whole, begun] = [textOf(part), textOf(part.slice(0, at))]
  if (whole === null || begun === null) return null
  const blanks = whole.indexOf(text)
  if (text && blanks >= 0) return begun.length < blanks ? null : begun.slice(blanks)
  // Of a text that went on, the beginning may have no tokens; blanks at its end are not shown.
  const known = text.lastIndexOf(whole.trimEnd() || whole)
  return known < 0 ? null : text.slice(0, known) + begun
}

// Null where nothing can go on from there.
export function textBefore({ content, reasoning = '', heat = [] }: Message, at: number): Before | null {
  const marks = heat.map((h) => markOf(h.token))
  const thoughtEnd = marks.findLastIndex((mark) => mark?.kind === 'thought' && mark.isEnd)
  const isThought = reasoning !== '' && (thoughtEnd < 0 ? !content : at < thoughtEnd)
  // A thought may begin before the first token: the template opens it.
  const begin = isThought
    ? marks.findLastIndex((mark, i) => mark !== null && i <= at) + 1
    : thoughtEnd + 1
  const stop = marks.findIndex((mark, i) => i >= begin && mark !== null)
  const end = stop < 0 ? heat.length : stop
  if (at < begin || at >= end) return null
  const text = before(isThought ? reasoning : content, heat.slice(begin, end), at - begin)
  return text === null ? null : { isThought, text }
}
