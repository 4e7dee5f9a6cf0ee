// flowchart.ts  Simple flow charts, in the notation that models write: "graph TD", "A[Text] -->|label| B{Question}".
// Nodes are put on ranks by their longest path from a start, ordered on each rank by where their neighbours are, and
// joined by curves. Enough for charts of a few dozen nodes; subgraphs and styles are skipped.
import { escapeHtml } from '../markdown/render'

type Shape = 'box' | 'round' | 'diamond' | 'circle'

interface Node {
  id: string
  label: string
  shape: Shape
  rank: number
  x: number // along the rank
  y: number // across ranks
  width: number
}

interface Edge {
  from: string
  to: string
  label: string
  isDotted: boolean
  hasArrow: boolean
}

export interface Chart {
  direction: 'down' | 'right'
  nodes: Map<string, Node>
  edges: Edge[]
}

const NODE = /^\s*([\w-]*\w)\s*(?:\(\((.+?)\)\)|\(\[(.+?)\]\)|\[\[(.+?)\]\]|\[(.+?)\]|\((.+?)\)|\{(.+?)\})?/
const LINK = /^\s*(?:(?:--|==)\s+([^-=>|]+?)\s+)?(-->|---|-\.->|-\.-|==>|===|--o|--x)\s*(?:\|([^|]*)\|)?/
const LIMIT = 300 // nodes and edges

function readNode(chart: Chart, text: string): { node: Node; rest: string } | null {
  const match = NODE.exec(text)
  if (!match) return null
  const [all, id, circle, stadium, subroutine, box, round, diamond] = match
  const label = circle ?? stadium ?? subroutine ?? box ?? round ?? diamond
  const shape: Shape = circle ? 'circle' : stadium || round ? 'round' : diamond ? 'diamond' : 'box'
  let node = chart.nodes.get(id!)
  if (!node) {
    node = { id: id!, label: id!, shape: 'box', rank: 0, x: 0, y: 0, width: 0 }
    chart.nodes.set(id!, node)
  }
  if (label !== undefined) Object.assign(node, { label: label.replace(/^"|"$/g, '').replace(/<br\s*\/?>/gi, ' '), shape })
  return { node, rest: text.slice(all.length) }
}

export function parseFlowchart(source: string): Chart | null {
  const lines = source.split(/\n|;/)
  const head = /^\s*(?:graph|flowchart)\s+(TD|TB|BT|LR|RL)?/i.exec(lines[0] ?? '')
  if (!head) return null
  const direction = /LR|RL/i.test(head[1] ?? '') ? 'right' : 'down'
  const chart: Chart = { direction, nodes: new Map(), edges: [] }
  for (const line of lines.slice(1)) {
    if (chart.nodes.size >= LIMIT) break
    if (/^\s*(%%|subgraph|end\b|style|classDef|class|click|linkStyle|direction)/.test(line)) continue
    let read = readNode(chart, line)
    while (read && chart.edges.length < LIMIT && chart.nodes.size < LIMIT) {
      const link = LINK.exec(read.rest)
      if (!link) break
      const next = readNode(chart, read.rest.slice(link[0].length))
      if (!next) break
      chart.edges.push({
        from: read.node.id,
        to: next.node.id,
        label: (link[1] ?? link[3] ?? '').trim().replace(/^"|"$/g, ''),
        isDotted: link[2]!.includes('.'),
        hasArrow: /[>ox]$/.test(link[2]!),
      })
      read = next
    }
  }
  return chart.nodes.size ? chart : null
}

// Longest path from a start; an edge back to a node on the way does not count.
function rankNodes(chart: Chart) {
  const next = new Map<string, string[]>()
  for (const { from, to } of chart.edges) next.set(from, [...(next.get(from) ?? []), to])
  const state = new Map<string, 'open' | 'done'>()
  const order: string[] = []
  const isBack = new Set<string>()
  const visit = (id: string) => {
    state.set(id, 'open')
    for (const to of next.get(id) ?? []) {
      if (state.get(to) === 'open') isBack.add(`${id} ${to}`)
      else if (!state.has(to)) visit(to)
    }
    state.set(id, 'done')
    order.unshift(id)
  }
  for (const id of chart.nodes.keys()) if (!state.has(id)) visit(id)
  for (const id of order) {
    for (const to of next.get(id) ?? []) {
      if (isBack.has(`${id} ${to}`)) continue
      const node = chart.nodes.get(to)!
      node.rank = Math.max(node.rank, chart.nodes.get(id)!.rank + 1)
    }
  }
}

function orderRanks(chart: Chart): Node[][] {
  const ranks: Node[][] = []
  for (const node of chart.nodes.values()) (ranks[node.rank] ??= []).push(node)
  const place = new Map<string, number>()
  const remember = (rank: Node[]) => rank.forEach((node, i) => place.set(node.id, i - (rank.length - 1) / 2))
  ranks.forEach(remember)
  for (let sweep = 0; sweep < 4; sweep++) {
    for (const rank of sweep % 2 ? [...ranks].reverse() : ranks) {
      const centre = (node: Node) => {
        const near = chart.edges.filter((e) => e.from === node.id || e.to === node.id)
        const places = near.map((e) => place.get(e.from === node.id ? e.to : e.from)!)
        return places.length ? places.reduce((a, b) => a + b, 0) / places.length : place.get(node.id)!
      }
      rank.sort((a, b) => centre(a) - centre(b))
      remember(rank)
    }
  }
  return ranks
}

const HEIGHT = 40
const ACROSS = 90 // from rank to rank, downwards
const GAP = 28

function layOut(chart: Chart): { width: number; height: number } {
  rankNodes(chart)
  for (const node of chart.nodes.values()) {
    const text = node.label.length * 7.6 + 28
    node.width = node.shape === 'diamond' ? text * 1.35 : node.shape === 'circle' ? Math.max(text, HEIGHT) : text
  }
  const isRight = chart.direction === 'right'
  const ranks = orderRanks(chart)
  const extent = (node: Node) => (isRight ? HEIGHT + GAP / 2 : node.width) + GAP
  const widest = Math.max(...ranks.map((rank) => rank.reduce((sum, node) => sum + extent(node), 0)))
  let across = GAP
  for (const rank of ranks) {
    const depth = isRight ? Math.max(...rank.map((node) => node.width)) : HEIGHT
    let along = (widest - rank.reduce((sum, node) => sum + extent(node), 0)) / 2
    for (const node of rank) {
      const middle = along + extent(node) / 2
      along += extent(node)
      if (isRight) Object.assign(node, { x: across + depth / 2, y: middle })
      else Object.assign(node, { x: middle, y: across + depth / 2 })
    }
    across += depth + (isRight ? 80 : ACROSS - HEIGHT)
  }
  return isRight ? { width: across, height: widest } : { width: widest, height: across }
}

function drawNode({ x, y, width, shape, label }: Node): string {
  const w = width / 2
  const h = HEIGHT / 2
  const outline =
    shape === 'diamond'
      ? `<path class="n" d="M${x} ${y - h * 1.3}L${x + w} ${y}L${x} ${y + h * 1.3}L${x - w} ${y}Z"/>`
      : `<rect class="n" x="${x - w}" y="${y - h}" width="${width}" height="${HEIGHT}" rx="${shape === 'box' ? 5 : h}"/>`
  return `${outline}<text x="${x}" y="${y + 5}">${escapeHtml(label)}</text>`
}

function drawEdge(chart: Chart, edge: Edge): string {
  const a = chart.nodes.get(edge.from)!
  const b = chart.nodes.get(edge.to)!
  const isRight = chart.direction === 'right'
  const reach = (node: Node) => (isRight ? node.width / 2 : (HEIGHT / 2) * (node.shape === 'diamond' ? 1.3 : 1))
  const sign = (isRight ? b.x > a.x : b.y > a.y) ? 1 : -1
  const isLoop = a.rank >= b.rank
  // Back edges swing out to the side, so that they are not hidden behind the way forth.
  const [x1, y1] = isRight ? [a.x + sign * reach(a), a.y] : [a.x, a.y + sign * reach(a)]
  const [x2, y2] = isRight ? [b.x - sign * (reach(b) + 4), b.y] : [b.x, b.y - sign * (reach(b) + 4)]
  const bow = isLoop ? 90 : 0
  const [mx, my] = isRight ? [(x1 + x2) / 2, (y1 + y2) / 2 + bow] : [(x1 + x2) / 2 + bow, (y1 + y2) / 2]
  const c1 = isRight ? `${mx} ${y1 + bow}` : `${x1 + bow} ${my}`
  const c2 = isRight ? `${mx} ${y2 + bow}` : `${x2 + bow} ${my}`
  const label = edge.label
    ? `<text class="l" x="${isLoop && !isRight ? mx - 20 : mx}" y="${my + 4}">${escapeHtml(edge.label)}</text>`
    : ''
  const arrow = edge.hasArrow ? ' marker-end="url(#a)"' : ''
  const dots = edge.isDotted ? ' stroke-dasharray="4 4"' : ''
  return `<path class="e" d="M${x1} ${y1}C${c1} ${c2} ${x2} ${y2}"${arrow}${dots}/>${label}`
}

// The chart as SVG, or null when the text is none.
export function drawFlowchart(source: string, dark: boolean): string | null {
  const chart = parseFlowchart(source)
  if (!chart) return null
  const size = layOut(chart)
  const ink = dark ? '#d8d2c9' : '#4a443d'
  const paper = dark ? '#1b1a18' : '#ffffff'
  const names = [...chart.nodes.values()].map((node) => node.label).join(', ')
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="${escapeHtml(names)}" ` +
    `viewBox="0 0 ${size.width + 60} ${size.height}" width="${size.width + 60}">` +
    `<style>.n{fill:${dark ? '#33261f' : '#fbeee7'};stroke:${dark ? '#f0895b' : '#b0401b'};stroke-width:1.4}` +
    `.e{fill:none;stroke:${ink};stroke-width:1.4}text{font:14px system-ui,sans-serif;text-anchor:middle;` +
    `fill:${dark ? '#f4efe8' : '#211f1c'}}.l{font-size:12.5px;paint-order:stroke;stroke:${paper};stroke-width:5px}</style>` +
    `<defs><marker id="a" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="8" markerHeight="8" orient="auto">` +
    `<path d="M0 0L8 4L0 8Z" fill="${ink}"/></marker></defs>` +
    chart.edges.map((edge) => drawEdge(chart, edge)).join('') +
    [...chart.nodes.values()].map(drawNode).join('') +
    `</svg>`
  )
}
