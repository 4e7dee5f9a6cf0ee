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

// The answer's text before the token at `at`. Null where an answer cannot go on from: in the thought, before the text
// begins, inside a letter, or where the tokens are not those of the text.
export function textBefore({ content, heat = [] }: Message, at: number): string | null {
  const isMark = (h: Heat) => markOf(h.token) !== null
  const begin = heat.findLastIndex((h) => {
    const mark = markOf(h.token)
    return mark?.kind === 'thought' && mark.isEnd
  }) + 1
  const stop = heat.findIndex((h, i) => i >= begin && isMark(h))
  const end = stop < 0 ? heat.length : stop
  if (at < begin || at >= end) return null
  const [whole, before] = [textOf(heat.slice(begin, end)), textOf(heat.slice(begin, at))]
  if (whole === null || before === null) return null
  const blanks = whole.indexOf(content)
  if (content && blanks >= 0) return before.length < blanks ? null : before.slice(blanks)
  const known = content.lastIndexOf(whole) // of an answer that went on, the beginning may have no tokens
  return known < 0 ? null : content.slice(0, known) + before
}
