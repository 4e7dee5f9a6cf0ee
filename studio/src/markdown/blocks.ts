// blocks.ts  Cuts Markdown into blocks that do not change any more when text is added, so that a growing answer renders
// its last block alone. Fenced code is a block of its own kind.
//
// A cut lies at a blank line, outside of fences, where the next line starts at the margin and does not continue a list.
// Reference definitions reach across blocks; a text that has one is a single block.

export interface TextBlock {
  kind: 'text'
  text: string
}

export interface CodeBlock {
  kind: 'code'
  language: string
  text: string
  isOpen: boolean // its closing fence has not come yet
}

export type Block = TextBlock | CodeBlock

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/
const LIST_ITEM = /^([-*+]|\d{1,9}[.)])\s/
const REFERENCE = /^ {0,3}\[[^\]]+\]:\s*\S/m

function closes(line: string, fence: string): boolean {
  const trimmed = line.trim()
  return trimmed.length >= fence.length && trimmed === fence[0]!.repeat(trimmed.length) && !/^ {4}/.test(line)
}

export function splitBlocks(source: string): Block[] {
  if (REFERENCE.test(source)) return [{ kind: 'text', text: source }]
  const blocks: Block[] = []
  let text: string[] = []
  let code: { fence: string; language: string; lines: string[] } | null = null
  let isAfterBlank = false
  let isInList = false

  const endText = () => {
    const joined = text.join('\n').trimEnd()
    if (joined) blocks.push({ kind: 'text', text: joined })
    text = []
    isInList = false
  }

  for (const line of source.split('\n')) {
    if (code) {
      if (closes(line, code.fence)) {
        blocks.push({ kind: 'code', language: code.language, text: code.lines.join('\n'), isOpen: false })
        code = null
      } else {
        code.lines.push(line)
      }
      continue
    }
    const fence = FENCE.exec(line)
    // An indented fence inside a list belongs to its item.
    if (fence && !(isInList && line.startsWith(' '))) {
      endText()
      code = { fence: fence[1]!, language: fence[2]!.toLowerCase(), lines: [] }
      isAfterBlank = false
      continue
    }
    if (!line.trim()) {
      isAfterBlank = true
      text.push(line)
      continue
    }
    const isItem = LIST_ITEM.test(line)
    if (isAfterBlank && !/^\s/.test(line) && !(isInList && isItem)) endText()
    if (isItem) isInList = true
    isAfterBlank = false
    text.push(line)
  }
  if (code) blocks.push({ kind: 'code', language: code.language, text: code.lines.join('\n'), isOpen: true })
  else endText()
  return blocks
}
