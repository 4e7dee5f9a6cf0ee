// open.ts  Which texts can be looked at, and the one that is open.
import { signal } from '@preact/signals'
import { isFlowchart } from './flowchart_text'

export type ArtefactKind = 'html' | 'svg' | 'diagram' | 'table'

export interface Artefact {
  kind: ArtefactKind
  source: string
  rows?: string[][] // of a table
}

export const openedArtefact = signal<Artefact | null>(null)

export const openArtefact = (artefact: Artefact) => (openedArtefact.value = artefact)
export const closeArtefact = () => (openedArtefact.value = null)

export function openTable(rows: string[][]) {
  openArtefact({ kind: 'table', rows, source: rows.map((row) => row.join('\t')).join('\n') })
}

const KINDS: Record<string, ArtefactKind> = {
  html: 'html',
  svg: 'svg',
  mermaid: 'diagram',
  flowchart: 'diagram',
  csv: 'table',
  tsv: 'table',
}

export function artefactOf(language: string, text: string): Artefact | null {
  if (!text.trim()) return null
  const kind = KINDS[language] ?? (language === 'xml' && /^\s*(<\?xml[^>]*>\s*)?<svg[\s>]/i.test(text) ? 'svg' : null)
  if (!kind) return null
  if (kind === 'diagram' && !isFlowchart(text)) return null
  return { kind, source: text, ...(kind === 'table' ? { rows: parseRows(text, language === 'tsv' ? '\t' : ',') } : {}) }
}

// RFC 4180: quoted fields may hold separators, line ends and doubled quotes.
export function parseRows(text: string, separator: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let field = ''
  let isQuoted = false
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!
    if (isQuoted) {
      if (c !== '"') field += c
      else if (text[i + 1] === '"') field += text[i++]
      else isQuoted = false
    } else if (c === '"' && !field) {
      isQuoted = true
    } else if (c === separator || c === '\n') {
      row.push(field.trim())
      field = ''
      if (c === '\n') {
        rows.push(row)
        row = []
      }
    } else if (c !== '\r') {
      field += c
    }
  }
  if (field || row.length) rows.push([...row, field.trim()])
  return rows.filter((cells) => cells.some((cell) => cell))
}
