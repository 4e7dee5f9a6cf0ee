// formulas.ts  Finds TeX in Markdown: $…$, $$…$$, \(…\) and \[…\]. Each formula is taken out and a mark is left in its place,
// so that no sign of it is read as Markdown; the marks become formulas when the rest is on the page (maths.ts).
//
// A dollar is money more often than TeX. It opens a formula only before a sign that is no space, and closes one only after
// such a sign and before none of a word: "$5 and $10", "$5-$10" and "$HOME/$USER" stay text. So does a formula that reads
// like a sentence.

export interface Formula {
  source: string // with its delimiters
  tex: string | null // none while it is half written
  isBlock: boolean
}

export interface Extracted {
  text: string
  formulas: Formula[]
}

// Characters that Unicode keeps free of any meaning, so no text has them.
const MARK_START = '\uFDD0'
const MARK_END = '\uFDD1'
export const MARK = /\uFDD0(\d+)\uFDD1/g

const LONGEST = 5000 // characters of a formula

const WORDS = /\\(?:text|textbf|textit|mathrm|operatorname|mbox)\s*\{[^{}]*\}|\\[a-zA-Z]+/g
const MONEY = /^\d[\s\S]*(?:^|\s)[A-Za-z]{2,}(?:\s|$)/
const SENTENCE = /(?:^|\s)[A-Za-z]{3,} [A-Za-z]{3,}(?=[\s.,;:!?]|$)/

function readsLikeText(tex: string): boolean {
  const plain = tex.replace(WORDS, '')
  return MONEY.test(plain) || SENTENCE.test(plain)
}

const isCitation = (tex: string) => /^[\s\d,–-]*$/.test(tex)
const hasBlankLine = (text: string) => /\n[ \t]*\n/.test(text)

// Where the code that begins at `at` ends, or null when it is none.
function codeEnd(source: string, at: number): number | null {
  if (source[at] !== '`' && source[at] !== '~') return null
  const signs = /`+|~+/y
  signs.lastIndex = at
  const run = signs.exec(source)![0]
  const line = source.slice(source.lastIndexOf('\n', at - 1) + 1, at)
  if (run.length >= 3 && /^\s*(?:[-*+]|\d+[.)])?\s*$/.test(line)) {
    const fence = new RegExp(`\\n[ \\t]*${run[0]}{${run.length},}[ \\t]*(?=\\n|$)`, 'g')
    fence.lastIndex = at + run.length
    return fence.test(source) ? fence.lastIndex : source.length
  }
  if (run[0] === '~') return at + run.length
  const closing = new RegExp(`(?<!\`)${run}(?!\`)`, 'g')
  closing.lastIndex = at + run.length
  return closing.test(source) ? closing.lastIndex : at + run.length
}

interface Found {
  end: number
  tex: string | null
  isBlock: boolean
}

// A formula between delimiters that mean nothing else.
function delimited(source: string, at: number, close: string, isBlock: boolean, isGrowing: boolean): Found | null {
  const end = source.indexOf(close, at + 2)
  const tex = source.slice(at + 2, end < 0 ? source.length : end)
  if (hasBlankLine(tex) || tex.length > LONGEST) return null
  if (end < 0) return isGrowing ? { end: source.length, tex: null, isBlock } : null
  if (!tex.trim() || (close === '\\]' && isCitation(tex))) return null
  return { end: end + close.length, tex, isBlock }
}

function dollars(source: string, at: number, isGrowing: boolean): Found | null {
  if (/\w/.test(source[at - 1] ?? '') || !/[^\s$]/.test(source[at + 1] ?? '')) return null
  const closing = /(?<!\\)\$/g
  closing.lastIndex = at + 1
  const end = closing.test(source) ? closing.lastIndex - 1 : -1
  const tex = source.slice(at + 1, end < 0 ? source.length : end)
  if (hasBlankLine(tex) || tex.length > LONGEST || readsLikeText(tex)) return null
  const isLast = end === source.length - 1
  if (end < 0 || isLast) {
    // Half written, or so it may be: what comes next decides whether a last dollar closes.
    if (isGrowing) return /^\D/.test(tex) && /[\\^_={}*]/.test(tex) ? { end: source.length, tex: null, isBlock: false } : null
    if (end < 0) return null
  }
  if (/\s/.test(source[end - 1]!) || /[\w$]/.test(source[end + 1] ?? '')) return null
  return { end: end + 1, tex, isBlock: false }
}

function formulaAt(source: string, at: number, isGrowing: boolean): Found | null {
  if (source.startsWith('$$', at)) return delimited(source, at, '$$', true, isGrowing)
  if (source.startsWith('\\(', at)) return delimited(source, at, '\\)', false, isGrowing)
  if (source.startsWith('\\[', at)) return delimited(source, at, '\\]', true, isGrowing)
  return source[at] === '$' ? dollars(source, at, isGrowing) : null
}

// What is passed over at once: plain text, addresses, signs without meaning behind a backslash.
const OTHER = /[^$\\`~\]h]+|https?:\/\/\S+|\]\([^)\s]*\)|\\[\s\S]|\$+/y

// `isGrowing`: more may come, so a formula without an end is half written.
export function extractFormulas(source: string, isGrowing: boolean): Extracted {
  if (!/[$\\]/.test(source)) return { text: source, formulas: [] }
  const formulas: Formula[] = []
  let text = ''
  const clean = source.replace(/[\uFDD0\uFDD1]/g, '')
  for (let at = 0; at < clean.length; ) {
    const found = formulaAt(clean, at, isGrowing)
    if (found) {
      text += MARK_START + formulas.length + MARK_END
      formulas.push({ source: clean.slice(at, found.end), tex: found.tex, isBlock: found.isBlock })
      at = found.end
      continue
    }
    OTHER.lastIndex = at
    const end = codeEnd(clean, at) ?? (OTHER.test(clean) ? OTHER.lastIndex : at + 1)
    text += clean.slice(at, end)
    at = end
  }
  return { text, formulas }
}
