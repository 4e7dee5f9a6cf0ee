// flowchart_layout.ts  Puts a flow chart on ranks, in the manner of Sugiyama: every edge leads to a later rank (edges back are
// turned round for this), has a place of its own on each rank that it crosses, and on one of them a place for its label.
// So edges do not run through nodes, and labels overlap neither each other nor anything else.
//
// A group is laid out by itself and is then one large item of its parent. An edge that leaves it gets a port: a place on
// the group's first or last rank, where the parent takes the edge over.
//
// Positions are "along" a rank and "across" the ranks; flowchart.ts turns them into x and y.
import type { Chart, ChartEdge, ChartNode } from './flowchart_text'

export interface Point {
  along: number
  across: number
}

export interface Size {
  along: number
  across: number
}

export interface Box extends Size {
  middle: Point
}

export interface Route {
  edge: ChartEdge
  points: Point[]
  label: Point | null // its middle
}

export interface Layout extends Size {
  nodes: Map<string, Box>
  groups: Map<string, Box>
  routes: Route[]
  loops: Map<ChartEdge, Point> // edges from a node to itself: the middle of the label
  impossible: ChartEdge[] // between a group and its own content
}

// What the drawing knows of sizes: they depend on fonts and on the direction of the chart.
export interface Measures {
  node(node: ChartNode): Size
  label(text: string): Size
  // Room that a group takes around its content, and the least it needs for its title.
  frame(title: string): { before: number; after: number; above: number; below: number; least: Size }
  // How far the outline of a node is from its middle, across, at this distance from it along the rank.
  border(node: ChartNode, size: Size, along: number): number
}

export const LOOP = 30 // how far an edge from a node to itself swings out

interface Item {
  before: number // extents along the rank from its middle
  after: number
  across: number
  rank: number
  at: number
  isReal: boolean // a node or a group, and no part of an edge
  up: Joint[]
  down: Joint[]
  node?: ChartNode
  size?: Size
  group?: Level
}

// Where a chain of items hangs together: the other item, and where the line meets each of the two.
interface Joint {
  item: Item
  own: number
  other: number
}

interface Port {
  edge: ChartEdge
  inside: string // the end of the edge in the group
  isAbove: boolean
  at: number // from the middle of the group
}

interface Chain {
  edge: ChartEdge
  items: Item[] // from the first rank to the last
  label: Item | null
  port: Port | null // it leads to, when the edge belongs to a parent
}

interface Level {
  id: string | null
  ranks: Item[][]
  chains: Chain[]
  along: number
  across: number
  origin: Point // of its content, in the chart
  frame: { before: number; after: number; above: number; below: number }
  tops: number[] // of its ranks
}

const GAP = 26 // between nodes of a rank
const EDGE_GAP = 14 // beside a part of an edge
const RANK_GAP = 46
const HALF_RANK_GAP = 24 // where every second rank is for labels

const sum = (list: number[]) => list.reduce((a, b) => a + b, 0)

export class FlowchartLayout {
  private readonly impossible: ChartEdge[] = []
  private readonly loops: ChartEdge[] = []
  private readonly reversed = new Set<ChartEdge>()
  private readonly levels: Level[] = []

  constructor(
    private readonly chart: Chart,
    private readonly measures: Measures,
  ) {}

  run(): Layout {
    const root = this.layOut(null, [])
    this.move(root, { along: root.frame.before, across: root.frame.above })
    return this.collect(root)
  }

  private parentOf(id: string): string | null {
    return this.chart.nodes.get(id)?.group ?? this.chart.groups.get(id)?.parent ?? null
  }

  // The child of `group` that holds `id`, or is it; null when it lies elsewhere.
  private childOf(group: string | null, id: string): string | null {
    for (let at: string | null = id; at !== null; at = this.parentOf(at)) if (this.parentOf(at) === group) return at
    return null
  }

  private layOut(group: string | null, ports: Port[]): Level {
    const children = [...this.chart.nodes.values(), ...this.chart.groups.values()]
      .map(({ id }) => id)
      .filter((id) => this.parentOf(id) === group)
    const edges = this.ownEdges(group)
    const pairs = new Set(edges.map(({ top, bottom }) => [top, bottom].sort().join('\n')))
    const unit = pairs.size < edges.length || edges.some(({ edge }) => edge.label) ? 2 : 1
    const first = ports.some((port) => port.isAbove) ? 1 : 0
    const ranks = this.rank(children, edges, unit, first)
    const last = Math.max(first, ...ranks.values())

    // Groups inside come first: the edges that cross their border say where their ports are.
    const inner = new Map<string, Port[]>()
    const enter = (child: string, edge: ChartEdge, inside: string, isAbove: boolean): Port | null => {
      if (child === inside) return null
      const port = { edge, inside, isAbove, at: 0 }
      inner.set(child, [...(inner.get(child) ?? []), port])
      return port
    }
    const wires = [
      ...edges.map(({ edge, top, bottom }) => {
        const [a, b] = this.reversed.has(edge) ? [edge.to, edge.from] : [edge.from, edge.to]
        return { edge, port: null, top, bottom, topPort: enter(top, edge, a, false), bottomPort: enter(bottom, edge, b, true) }
      }),
      ...ports.map((port) => {
        const child = this.childOf(group, port.inside)!
        const within = enter(child, port.edge, port.inside, port.isAbove)
        return port.isAbove
          ? { edge: port.edge, port, top: null, bottom: child, topPort: null, bottomPort: within }
          : { edge: port.edge, port, top: child, bottom: null, topPort: within, bottomPort: null }
      }),
    ]
    const items = new Map(children.map((id) => [id, this.item(id, ranks.get(id)!, inner.get(id) ?? [])]))

    const chains: Chain[] = []
    const all = [...items.values()]
    for (const { edge, port, top, bottom, topPort, bottomPort } of wires) {
      const from = top === null ? emptyItem(0) : items.get(top)!
      const to = bottom === null ? emptyItem(last + 1) : items.get(bottom)!
      const between = Array.from({ length: Math.max(0, to.rank - from.rank - 1) }, (_, i) => emptyItem(from.rank + 1 + i))
      const label = !port && edge.label ? between[Math.floor((between.length - 1) / 2)]! : null
      if (label) {
        const size = this.measures.label(edge.label)
        Object.assign(label, { before: size.along / 2, after: size.along / 2, across: size.across })
      }
      const chain = [from, ...between, to]
      for (let i = 0; i + 1 < chain.length; i++) {
        const own = i === 0 ? (topPort?.at ?? 0) : 0
        const other = i + 2 === chain.length ? (bottomPort?.at ?? 0) : 0
        chain[i]!.down.push({ item: chain[i + 1]!, own, other })
        chain[i + 1]!.up.push({ item: chain[i]!, own: other, other: own })
      }
      all.push(...chain.filter((item) => !item.isReal))
      chains.push({ edge, items: chain, label, port })
    }

    const level: Level = {
      id: group, ranks: [], chains, along: 0, across: 0, origin: { along: 0, across: 0 }, tops: [],
      frame: { before: GAP, after: GAP, above: GAP, below: GAP },
    }
    for (const item of all) (level.ranks[item.rank] ??= []).push(item)
    level.ranks = Array.from(level.ranks, (rank) => rank ?? [])
    order(level.ranks)
    align(level.ranks)
    this.measure(level, unit === 2 ? HALF_RANK_GAP : RANK_GAP)
    this.levels.push(level)
    return level
  }

  // Edges whose ends lie in different children of this group. Those from a node to itself are kept apart.
  private ownEdges(group: string | null): { edge: ChartEdge; top: string; bottom: string }[] {
    return this.chart.edges.flatMap((edge) => {
      const top = this.childOf(group, edge.from)
      const bottom = this.childOf(group, edge.to)
      if (top === null || bottom === null) return []
      if (top !== bottom) return [{ edge, top, bottom }]
      if (edge.from === top && edge.to === top && this.chart.nodes.has(top)) this.loops.push(edge)
      else if (edge.from === top || edge.to === top) this.impossible.push(edge)
      return []
    })
  }

  // The longest way from a start. An edge back to where the way came from is turned round.
  private rank(children: string[], edges: { edge: ChartEdge; top: string; bottom: string }[], unit: number, first: number) {
    const out = new Map<string, typeof edges>(children.map((id) => [id, []]))
    for (const entry of edges) out.get(entry.top)!.push(entry)
    const state = new Map<string, 'open' | 'done'>()
    const sorted: string[] = []
    const visit = (id: string) => {
      state.set(id, 'open')
      for (const entry of out.get(id)!) {
        if (state.get(entry.bottom) === 'open') {
          this.reversed.add(entry.edge)
          ;[entry.top, entry.bottom] = [entry.bottom, entry.top]
        } else if (!state.has(entry.bottom)) {
          visit(entry.bottom)
        }
      }
      state.set(id, 'done')
      sorted.unshift(id)
    }
    // From nodes that nothing leads to, then from those of circles.
    const starts = new Set(children)
    for (const { top, bottom } of edges) if (top !== bottom) starts.delete(bottom)
    for (const id of [...starts, ...children]) if (!state.has(id)) visit(id)

    const ranks = new Map(children.map((id) => [id, first]))
    for (const id of sorted) {
      for (const { top, bottom } of edges) {
        if (top === id) ranks.set(bottom, Math.max(ranks.get(bottom)!, ranks.get(id)! + unit))
      }
    }
    // A start stands right above what it leads to.
    for (const id of starts) {
      const below = edges.filter(({ top }) => top === id).map(({ bottom }) => ranks.get(bottom)!)
      if (below.length) ranks.set(id, Math.min(...below) - unit)
    }
    return ranks
  }

  private item(id: string, rank: number, ports: Port[]): Item {
    const node = this.chart.nodes.get(id)
    if (!node) {
      const group = this.layOut(id, ports)
      const half = group.along / 2
      return { ...emptyItem(rank), before: half, after: half, across: group.across, isReal: true, group }
    }
    const size = this.measures.node(node)
    const loops = this.chart.edges.filter((edge) => edge.from === id && edge.to === id)
    const labels = loops.map((edge) => this.loopLabel(edge))
    const swing = loops.length ? LOOP + Math.max(...labels.map(({ along }) => along)) + 6 : 0
    const across = Math.max(size.across, sum(labels.map((label) => label.across + 4)))
    const half = size.along / 2
    return { ...emptyItem(rank), before: half, after: half + swing, across, isReal: true, node, size }
  }

  // Without a label there is still the loop.
  private loopLabel({ label }: ChartEdge): Size {
    const size = label ? this.measures.label(label) : { along: 0, across: 0 }
    return { along: size.along, across: Math.max(size.across, 22) }
  }

  // Sizes of the level and where its ranks are; with the frame for a group.
  private measure(level: Level, gap: number) {
    const title = level.id === null ? '' : this.chart.groups.get(level.id)!.label
    const frame = level.id === null ? null : this.measures.frame(title)
    if (frame) level.frame = { before: frame.before, after: frame.after, above: frame.above, below: frame.below }
    const items = level.ranks.flat()
    const start = Math.min(...items.map((item) => item.at - item.before), Infinity)
    const end = Math.max(...items.map((item) => item.at + item.after), -Infinity)
    const content = items.length ? end - start : 0
    const { before, after, above, below } = level.frame
    level.along = Math.max(content + before + after, frame?.least.along ?? 0)
    const shift = (level.along - before - after - content) / 2 - (items.length ? start : 0)
    for (const item of items) item.at += shift

    let across = 0
    for (const rank of level.ranks) {
      level.tops.push(across)
      const depth = Math.max(0, ...rank.map((item) => item.across))
      across += depth + (depth || rank.length ? gap : 0)
    }
    level.across = Math.max(across - (across ? gap : 0) + above + below, frame?.least.across ?? 0)
    for (const chain of level.chains) {
      if (chain.port) chain.port.at = (chain.port.isAbove ? chain.items[0]! : chain.items.at(-1)!).at + before - level.along / 2
    }
  }

  private middle(level: Level, item: Item): Point {
    const depth = Math.max(0, ...level.ranks[item.rank]!.map(({ across }) => across))
    return {
      along: level.origin.along + item.at,
      across: level.origin.across + level.tops[item.rank]! + depth / 2,
    }
  }

  // Gives every level its place in the chart.
  private move(level: Level, origin: Point) {
    level.origin = origin
    for (const item of level.ranks.flat()) {
      if (!item.group) continue
      const { along, across } = this.middle(level, item)
      const { frame } = item.group
      this.move(item.group, {
        along: along - item.group.along / 2 + frame.before,
        across: across - item.group.across / 2 + frame.above,
      })
    }
  }

  private collect(root: Level): Layout {
    const layout: Layout = {
      along: root.along, across: root.across, nodes: new Map(), groups: new Map(), routes: [], loops: new Map(),
      impossible: this.impossible,
    }
    const pieces = new Map<ChartEdge, { level: Level; chain: Chain }[]>()
    for (const level of this.levels) {
      for (const item of level.ranks.flat()) {
        const middle = this.middle(level, item)
        if (item.group) {
          layout.groups.set(item.group.id!, { middle, along: item.group.along, across: item.group.across })
        } else if (item.node) {
          layout.nodes.set(item.node.id, { middle, ...item.size! })
          this.placeLoops(layout, item, middle)
        }
      }
      for (const chain of level.chains) pieces.set(chain.edge, [...(pieces.get(chain.edge) ?? []), { level, chain }])
      spread(level)
    }
    for (const edge of this.chart.edges) {
      const parts = pieces.get(edge)
      if (parts && edge.line !== 'hidden') layout.routes.push(this.route(edge, parts))
    }
    return layout
  }

  private placeLoops(layout: Layout, item: Item, middle: Point) {
    const loops = this.loops.filter((edge) => edge.from === item.node!.id)
    const sizes = loops.map((edge) => this.loopLabel(edge))
    let across = middle.across - sum(sizes.map((size) => size.across + 4)) / 2
    loops.forEach((edge, i) => {
      const along = middle.along + item.size!.along / 2 + LOOP + sizes[i]!.along / 2
      layout.loops.set(edge, { along, across: across + (sizes[i]!.across + 4) / 2 })
      across += sizes[i]!.across + 4
    })
  }

  // The whole way of an edge: out of the groups around its upper end, through the level it belongs to, into the others.
  private route(edge: ChartEdge, parts: { level: Level; chain: Chain }[]): Route {
    const own = parts.find(({ chain }) => !chain.port)!
    const out = parts.filter(({ chain }) => chain.port && !chain.port.isAbove)
    const into = parts.filter(({ chain }) => chain.port?.isAbove)
    const inOrder = [...out, own, ...into.reverse()]
    const points = inOrder.flatMap(({ level, chain }) => this.points(level, chain))
    if (this.reversed.has(edge)) points.reverse()
    return { edge, points, label: own.chain.label && this.middle(own.level, own.chain.label) }
  }

  private points(level: Level, { items }: Chain): Point[] {
    return items.flatMap((item, i) => {
      const { along, across } = this.middle(level, item)
      if (!item.isReal) {
        // Past nodes it goes straight, so that none is touched.
        const depth = Math.max(0, ...level.ranks[item.rank]!.map((other) => (other.isReal ? other.across : 0)))
        return depth ? [{ along, across: across - depth / 2 }, { along, across: across + depth / 2 }] : [{ along, across }]
      }
      const next = items[i === 0 ? 1 : i - 1]!
      const joint = (i === 0 ? item.down : item.up).find((candidate) => candidate.item === next)!
      const sign = i === 0 ? 1 : -1
      const reach = item.node ? this.measures.border(item.node, item.size!, joint.own) : item.across / 2
      return [{ along: along + joint.own, across: across + sign * reach }]
    })
  }
}

function emptyItem(rank: number): Item {
  return { before: 0, after: 0, across: 0, rank, at: 0, isReal: false, up: [], down: [] }
}

// Ends at the same side of a node lie side by side, in the order of where they lead.
function spread(level: Level) {
  for (const item of level.ranks.flat()) {
    if (!item.node) continue
    for (const side of [item.up, item.down]) {
      const sorted = [...side].sort((a, b) => a.item.at + a.other - b.item.at - b.other)
      const step = Math.min(16, (item.size!.along * 0.5) / sorted.length)
      sorted.forEach((joint, i) => (joint.own = (i - (sorted.length - 1) / 2) * step))
    }
  }
}

// Items of each rank by where their neighbours are, a few times; the order with the fewest crossings wins.
function order(ranks: Item[][]) {
  const place = new Map<Item, number>()
  const remember = () => ranks.forEach((rank) => rank.forEach((item, i) => place.set(item, i - (rank.length - 1) / 2)))
  const crossings = () => {
    let n = 0
    for (const rank of ranks) {
      const lines = rank.flatMap((item, i) => item.down.map((joint) => [i, place.get(joint.item)! + joint.other * 1e-4] as const))
      for (let i = 0; i < lines.length; i++) {
        for (let k = i + 1; k < lines.length; k++) {
          if (lines[i]![0] < lines[k]![0] && lines[i]![1] > lines[k]![1]) n++
        }
      }
    }
    return n
  }
  remember()
  let fewest = crossings()
  let best = ranks.map((rank) => [...rank])
  // A chart with thousands of crossings is not helped by care, and the page would stand still.
  const sweeps = place.size > 4000 ? 1 : 8
  for (let sweep = 0; sweep < sweeps && fewest > 0; sweep++) {
    const isDown = sweep % 2 === 0
    for (const rank of isDown ? ranks : [...ranks].reverse()) {
      const wish = new Map(
        rank.map((item) => {
          const near = isDown ? item.up : item.down
          const places = near.map((joint) => place.get(joint.item)! + joint.other * 1e-4)
          return [item, places.length ? sum(places) / places.length : place.get(item)!]
        }),
      )
      rank.sort((a, b) => wish.get(a)! - wish.get(b)!)
      rank.forEach((item, i) => place.set(item, i - (rank.length - 1) / 2))
    }
    const n = crossings()
    if (n < fewest) {
      fewest = n
      best = ranks.map((rank) => [...rank])
    }
  }
  best.forEach((rank, i) => (ranks[i] = rank))
}

// Each item as near as it can be to the middle of its neighbours, in the order of its rank and without overlap: least
// squares under these bounds, which merging neighbours that want to pass each other solves exactly.
function settle(rank: Item[], wished: number[]) {
  const offsets: number[] = []
  rank.forEach((item, i) => {
    const previous = rank[i - 1]
    const gap = previous && (previous.isReal && item.isReal ? GAP : EDGE_GAP)
    offsets.push(previous ? offsets[i - 1]! + previous.after + gap! + item.before : 0)
  })
  const blocks: { from: number; wish: number; weight: number }[] = []
  rank.forEach((item, i) => {
    let block = { from: i, wish: wished[i]! - offsets[i]!, weight: item.isReal ? 1 : 3 }
    while (blocks.length && blocks.at(-1)!.wish > block.wish) {
      const other = blocks.pop()!
      const weight = other.weight + block.weight
      block = { from: other.from, wish: (other.wish * other.weight + block.wish * block.weight) / weight, weight }
    }
    blocks.push(block)
  })
  blocks.forEach((block, b) => {
    const end = blocks[b + 1]?.from ?? rank.length
    for (let i = block.from; i < end; i++) rank[i]!.at = block.wish + offsets[i]!
  })
}

function align(ranks: Item[][]) {
  for (const rank of ranks) {
    const width = sum(rank.map((item) => item.before + item.after + GAP))
    settle(rank, rank.map((_, i) => (i - rank.length / 2) * (width / Math.max(1, rank.length))))
  }
  const ways: ((item: Item) => Joint[])[] = [(item) => item.up, (item) => item.down, (item) => [...item.up, ...item.down]]
  for (let sweep = 0; sweep < 14; sweep++) {
    const near = ways[sweep < 8 ? sweep % 2 : 2]!
    for (const rank of sweep % 2 ? [...ranks].reverse() : ranks) {
      settle(
        rank,
        rank.map((item) => {
          const wishes = near(item).map((joint) => joint.item.at + joint.other - joint.own)
          return wishes.length ? sum(wishes) / wishes.length : item.at
        }),
      )
    }
  }
}
