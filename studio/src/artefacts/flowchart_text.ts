// flowchart_text.ts  Reads flow charts in Mermaid's notation, as models write it: nodes of all shapes, links of all kinds with
// their texts, chains, "A & B --> C", groups. What is not understood is kept as notes, so that it can be said.

export type Shape = 'box' | 'round' | 'diamond' | 'circle' | 'hexagon' | 'cylinder' | 'slanted' | 'double'
export type Direction = 'down' | 'up' | 'right' | 'left'
export type Line = 'plain' | 'thick' | 'dotted' | 'hidden'
export type Tip = 'none' | 'arrow' | 'circle' | 'cross'

export interface ChartNode {
  id: string
  label: string
  shape: Shape
  group: string | null
}

export interface ChartGroup {
  id: string
  label: string
  parent: string | null
}

export interface ChartEdge {
  from: string // of a node or a group
  to: string
  label: string
  line: Line
  start: Tip
  end: Tip
}

export interface Chart {
  direction: Direction
  nodes: Map<string, ChartNode>
  groups: Map<string, ChartGroup>
  edges: ChartEdge[]
  unread: string[] // lines, or directions of groups, that nothing or only a part was made of
  hasStyles: boolean // colours and links, which are not drawn
  isCut: boolean // there was more than LIMIT
}

export const LIMIT = 300 // nodes, and edges

const HEAD = /^\s*(?:graph|flowchart)(?:-elk)?(?:[ \t]+(TD|TB|BT|LR|RL))?(?![\w-])[ \t]*;?/i
const BEFORE = /^\s*(?:---\n[\s\S]*?\n---\s*\n)?(?:\s*%%.*\n)*/ // a title block and comments

const DIRECTIONS: Record<string, Direction> = { TD: 'down', TB: 'down', BT: 'up', LR: 'right', RL: 'left' }

export const isFlowchart = (source: string) => HEAD.test(source.replace(BEFORE, ''))

const ID = /[\p{L}\p{N}\p{M}_](?:[\p{L}\p{N}\p{M}_]|[-.](?=[\p{L}\p{N}_]))*/uy

// Longest first. Some have more than one end.
const SHAPES: [string, string[], Shape][] = [
  ['(((', [')))'], 'circle'],
  ['((', ['))'], 'circle'],
  ['([', ['])'], 'round'],
  ['[[', [']]'], 'double'],
  ['[(', [')]'], 'cylinder'],
  ['[/', ['/]', '\\]'], 'slanted'],
  ['[\\', ['\\]', '/]'], 'slanted'],
  ['{{', ['}}'], 'hexagon'],
  ['[', [']'], 'box'],
  ['(', [')'], 'round'],
  ['{', ['}'], 'diamond'],
  ['>', [']'], 'box'],
]

const NAMED_SHAPES: Record<string, Shape> = {
  rounded: 'round', event: 'round', stadium: 'round', pill: 'round', terminal: 'round',
  diam: 'diamond', diamond: 'diamond', decision: 'diamond', question: 'diamond',
  circle: 'circle', circ: 'circle', 'dbl-circ': 'circle',
  hex: 'hexagon', hexagon: 'hexagon', prepare: 'hexagon',
  cyl: 'cylinder', cylinder: 'cylinder', db: 'cylinder', database: 'cylinder',
  'lean-r': 'slanted', 'lean-l': 'slanted', 'in-out': 'slanted', 'out-in': 'slanted',
  subproc: 'double', subprocess: 'double', 'fr-rect': 'double', subroutine: 'double',
}

const ENTITIES: Record<string, string> = { quot: '"', amp: '&', lt: '<', gt: '>', nbsp: ' ', apos: "'" }

// A text as it is meant: without its quotes, with entities as characters and <br> as a new line.
function plainText(text: string): string {
  return text
    .trim()
    .replace(/^"([\s\S]*)"$/, '$1')
    .replace(/^`([\s\S]*)`$/, '$1')
    .replace(/<br\s*\/?>|\\n/gi, '\n')
    .replace(/[#&](#?)(\w{2,8});/g, (all, _, name: string) => {
      if (/^\d+$/.test(name)) return Number(name) < 0x110000 ? String.fromCodePoint(Number(name)) : all
      return ENTITIES[name.toLowerCase()] ?? all
    })
    .trim()
}

// Reads one statement from left to right.
class Reader {
  at = 0
  constructor(readonly text: string) {}

  skip() {
    while (/\s/.test(this.text[this.at] ?? '')) this.at++
  }

  take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at
    const match = pattern.exec(this.text)
    if (match) this.at += match[0].length
    return match
  }

  get isAtEnd() {
    this.skip()
    return this.at >= this.text.length
  }

  // The text up to one of `ends`; brackets inside it come in pairs, and in quotes they count for nothing.
  until(open: string, ends: string[]): string | null {
    const quoted = /\s*"[^"]*"\s*/y
    const start = this.at
    if (this.take(quoted) && ends.some((end) => this.text.startsWith(end, this.at))) {
      const label = this.text.slice(start, this.at)
      this.at += ends[0]!.length
      return label
    }
    const [opening, closing] = [open.at(-1)!, ends[0]![0]!]
    for (let i = start, depth = 0; i < this.text.length; i++) {
      const end = ends.find((e) => this.text.startsWith(e, i))
      if (end && depth === 0) {
        this.at = i + end.length
        return this.text.slice(start, i)
      }
      if ('([{'.includes(opening) && this.text[i] === opening) depth++
      else if (depth > 0 && this.text[i] === closing) depth--
    }
    this.at = start
    return null
  }
}

interface Link {
  label: string
  line: Line
  start: Tip
  end: Tip
}

const TIPS: Record<string, Tip> = { '>': 'arrow', '<': 'arrow', o: 'circle', x: 'cross' }
const tipOf = (sign: string | undefined): Tip => TIPS[sign ?? ''] ?? 'none'
const lineOf = (body: string): Line =>
  body.includes('=') ? 'thick' : body.includes('.') ? 'dotted' : body.includes('~') ? 'hidden' : 'plain'

const NAME = /(?:[\w-]+@)?/.source // a link may have a name of its own
const PLAIN = new RegExp(`${NAME}([<ox]?)(--+|==+|-\\.+-|~~~+)(>|[ox](?![\\w])|)`, 'y')
const TOUCHING = new RegExp(`${NAME}([<ox]?)(--+|==+|-\\.+-)([ox])`, 'y') // "A --oB": the sign belongs to the link
const WITH_TEXT = new RegExp(
  `${NAME}([<ox]?)(?:--(?![->])\\s*(.+?)\\s*(--+)|==(?![=>])\\s*(.+?)\\s*(==+)|-\\.(?![-.])\\s*(.+?)\\s*(\\.+-))(>|[ox](?![\\w])|)`,
  'y',
)
const LABEL = /\s*\|(\s*"[^"]*"\s*|[^|]*)\|/y

function readLink(reader: Reader): Link | null {
  const start = reader.at
  for (const pattern of [PLAIN, WITH_TEXT, TOUCHING]) {
    reader.at = start
    const match = reader.take(pattern)
    if (!match) continue
    const text = pattern === WITH_TEXT ? (match[2] ?? match[4] ?? match[6]!) : null
    const body = text === null ? match[2]! : (match[3] ?? match[5] ?? match[7]!)
    const tip = pattern === WITH_TEXT ? match[8] : match[3]
    // Two signs and no tip are the beginning of a link with text.
    if (text === null && /^(--|==)$/.test(body) && !tip) continue
    const label = text ?? reader.take(LABEL)?.[1] ?? ''
    return { label: plainText(label), line: lineOf(body), start: tipOf(match[1]), end: tipOf(tip) }
  }
  reader.at = start
  return null
}

class Parser {
  readonly chart: Chart
  private readonly open: string[] = [] // groups

  constructor(direction: Direction) {
    this.chart = {
      direction, nodes: new Map(), groups: new Map(), edges: [], unread: [], hasStyles: false, isCut: false,
    }
  }

  statement(line: string) {
    const text = line.trim()
    if (!text || text.startsWith('%%')) return
    const word = /^(\w+)(?=\s|$)/.exec(text)?.[1]
    if (word === 'end' && text === 'end' && this.open.length) return void this.open.pop()
    if (word === 'subgraph') return this.group(text.slice('subgraph'.length))
    if (/^(style|classDef|class|click|linkStyle)\s+[^-=.&]/.test(text) || /^acc(Title|Descr)\s*[:{]/.test(text)) {
      this.chart.hasStyles = true
      return
    }
    if (word === 'direction' && this.open.length) {
      const direction = DIRECTIONS[text.slice('direction'.length).trim().toUpperCase()]
      if (direction !== this.chart.direction) this.chart.unread.push(text)
      return
    }
    if (!this.links(new Reader(text))) this.chart.unread.push(text)
  }

  private group(text: string) {
    const match = /^\s*([\w-]+)\s*(?:\[(.*)\])?\s*$/.exec(text)
    const label = plainText(match ? (match[2] ?? match[1]!) : text)
    const id = match?.[1] ?? (label || `group ${this.chart.groups.size + 1}`)
    if (!this.chart.groups.has(id)) this.chart.groups.set(id, { id, label, parent: this.open.at(-1) ?? null })
    this.open.push(id)
  }

  // Whether all of the line was understood.
  private links(reader: Reader): boolean {
    let left = this.nodes(reader)
    while (left.length && !reader.isAtEnd) {
      const link = readLink(reader)
      const right = link ? this.nodes(reader) : []
      if (!link || !right.length) return false
      for (const from of left) {
        for (const to of right) {
          if (this.chart.edges.length < LIMIT) this.chart.edges.push({ from, to, ...link })
          else this.chart.isCut = true
        }
      }
      left = right
    }
    return left.length > 0
  }

  // "A & B": their ids.
  private nodes(reader: Reader): string[] {
    const ids: string[] = []
    do {
      reader.skip()
      const id = this.node(reader)
      if (id === null) return []
      ids.push(id)
      reader.skip()
    } while (reader.take(/&/y))
    return ids
  }

  private node(reader: Reader): string | null {
    const id = reader.take(ID)?.[0]
    if (id === undefined) return null
    const { nodes } = this.chart
    const isKnown = nodes.has(id)
    if (!isKnown && nodes.size >= LIMIT) this.chart.isCut = true
    const node = nodes.get(id) ?? { id, label: id, shape: 'box', group: null }
    node.group ??= this.open.at(-1) ?? null
    for (const [open, ends, shape] of SHAPES) {
      if (!reader.text.startsWith(open, reader.at)) continue
      const start = reader.at
      reader.at += open.length
      const label = reader.until(open, ends)
      if (label === null) {
        reader.at = start
        continue
      }
      Object.assign(node, { label: plainText(label) || id, shape })
      break
    }
    this.named(reader, node)
    if (reader.take(/:::[\w-]+/y)) this.chart.hasStyles = true
    if (isKnown || nodes.size < LIMIT) nodes.set(id, node)
    return nodes.has(id) ? id : null
  }

  // A@{ shape: diamond, label: "Text" }
  private named(reader: Reader, node: ChartNode) {
    const match = reader.take(/@\{([^}]*)\}/y)
    if (!match) return
    const label = /label\s*:\s*("[^"]*"|[^,]+)/.exec(match[1]!)?.[1]
    const shape = /shape\s*:\s*"?([\w-]+)/.exec(match[1]!)?.[1]
    if (label) node.label = plainText(label)
    if (shape) node.shape = NAMED_SHAPES[shape] ?? 'box'
  }

  // A name that is both is the group: edges may lead to one.
  finish(): Chart {
    for (const id of this.chart.groups.keys()) this.chart.nodes.delete(id)
    return this.chart
  }
}

// Semicolons end a statement too, outside of texts.
const statements = (line: string) => line.match(/(?:"[^"]*"|[[({|][^\])}|]*[\])}|]|[#&]\w+;|[^;])+/g) ?? []

export function parseFlowchart(source: string): Chart | null {
  const body = source.replace(/\r/g, '').replace(BEFORE, '')
  const head = HEAD.exec(body)
  if (!head) return null
  const parser = new Parser(DIRECTIONS[(head[1] ?? 'TD').toUpperCase()]!)
  // Quoted labels may go over several lines.
  const lines = body.slice(head[0].length).replace(/[[({|]"[^"]*"[\])}|]/g, (label) => label.replace(/\n/g, '<br>'))
  for (const line of lines.split('\n')) {
    if (/^\s*%%/.test(line)) continue
    for (const statement of statements(line)) parser.statement(statement)
  }
  const chart = parser.finish()
  return chart.nodes.size ? chart : null
}
