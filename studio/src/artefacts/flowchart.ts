// flowchart.ts  A flow chart as SVG: what flowchart_text.ts read, where flowchart_layout.ts put it.
import { escapeHtml } from '../markdown/escape'
import { FlowchartLayout, LOOP, type Box, type Measures, type Point, type Route, type Size } from './flowchart_layout'
import { LIMIT, parseFlowchart, type Chart, type ChartEdge, type ChartNode, type Direction } from './flowchart_text'

export interface Drawing {
  svg: string
  unread: string[] // what could not be drawn
  hasStyles: boolean
  limit: number | null // nodes and edges, when there were more
}

const LINE = 18 // height of a line of text
const WRAP = 26 // characters, where a label is broken

// Widths are guessed: the fonts of the frame cannot be asked. Guesses are generous, so that text never leaves its box.
function textWidth(text: string, perCharacter: number): number {
  let width = 0
  for (const c of text) width += /[\u1100-\u{1ffff}]/u.test(c) ? 1.9 : /[A-ZmwMW@%]/.test(c) ? 1.25 : 1
  return width * perCharacter
}

function wrap(text: string): string[] {
  return text.split('\n').flatMap((line) => {
    const lines = ['']
    for (const word of line.trim().split(/\s+/)) {
      const last = lines.at(-1)!
      if (last && last.length + word.length >= WRAP) lines.push(word)
      else lines[lines.length - 1] = last ? `${last} ${word}` : word
    }
    return lines
  })
}

const widest = (lines: string[], perCharacter: number) => Math.max(...lines.map((line) => textWidth(line, perCharacter)))

// Width and height on the screen.
function nodeSize({ label, shape }: ChartNode): { width: number; height: number } {
  const lines = wrap(label)
  const width = widest(lines, 7.6)
  const height = lines.length * LINE + 22
  switch (shape) {
    case 'diamond':
      return { width: width + height + 34, height: height + 20 }
    case 'circle': {
      const side = Math.max(width + 26, height)
      return { width: side, height: lines.length > 1 || side < 70 ? side : height + 8 }
    }
    case 'hexagon':
    case 'slanted':
      return { width: width + 48, height }
    case 'cylinder':
      return { width: width + 28, height: height + 12 }
    default:
      return { width: width + (shape === 'box' ? 28 : 36), height }
  }
}

const isAcross = (direction: Direction) => direction === 'right' || direction === 'left'

function measuresFor(direction: Direction): Measures {
  const turned = isAcross(direction)
  const size = (width: number, height: number): Size =>
    turned ? { along: height, across: width } : { along: width, across: height }
  return {
    node: (node) => {
      const { width, height } = nodeSize(node)
      return size(width, height)
    },
    label: (text) => {
      const lines = wrap(text)
      return size(widest(lines, 6.8) + 12, lines.length * 16 + 4)
    },
    frame: (title) => {
      const [top, side] = [34, 16]
      const least = size(textWidth(title, 7.6) + 28, top + side)
      // The title is at the top, wherever the chart begins.
      switch (direction) {
        case 'down':
          return { before: side, after: side, above: top, below: side, least }
        case 'up':
          return { before: side, after: side, above: side, below: top, least }
        default:
          return { before: top, after: side, above: side, below: side, least }
      }
    },
    border: (node, { along, across }, at) => {
      const half = across / 2
      const radius = Math.min(along, across) / 2
      if (node.shape === 'diamond') return half * (1 - Math.abs(at) / (along / 2))
      if (node.shape === 'round' || node.shape === 'circle') {
        const beyond = Math.max(0, Math.abs(at) - (along / 2 - radius))
        return half - radius + Math.sqrt(Math.max(0, radius * radius - beyond * beyond))
      }
      if (node.shape === 'hexagon' && turned) return half - (16 * Math.abs(at)) / (along / 2)
      return half
    },
  }
}

const px = (n: number) => String(Math.round(n * 10) / 10)

class Canvas {
  private readonly turned: boolean

  constructor(
    private readonly direction: Direction,
    private readonly across: number,
  ) {
    this.turned = isAcross(direction)
  }

  at({ along, across }: Point): { x: number; y: number } {
    const forth = this.direction === 'up' || this.direction === 'left' ? this.across - across : across
    return this.turned ? { x: forth, y: along } : { x: along, y: forth }
  }

  rect({ middle, along, across }: Box): { x: number; y: number; width: number; height: number } {
    const { x, y } = this.at(middle)
    const [width, height] = this.turned ? [across, along] : [along, across]
    return { x: x - width / 2, y: y - height / 2, width, height }
  }

  // A smooth line through all points that runs on from rank to rank: it leaves and arrives in the direction of the chart,
  // and between two points it never goes beyond them (a monotone cubic spline of "along" over "across").
  curve(points: Point[]): string {
    const slopes = points.slice(1).map((point, i) => {
      const rise = point.across - points[i]!.across
      return rise ? (point.along - points[i]!.along) / rise : 0
    })
    const tangents = points.map((_, i) => {
      const [before, after] = [slopes[i - 1], slopes[i]]
      return before !== undefined && after !== undefined && before * after > 0 ? (2 * before * after) / (before + after) : 0
    })
    const place = (along: number, across: number) => {
      const { x, y } = this.at({ along, across })
      return `${px(x)} ${px(y)}`
    }
    return points.reduce((path, { along, across }, i) => {
      if (i === 0) return `M${place(along, across)}`
      const from = points[i - 1]!
      // Lines that bend at both ends do so early, which keeps ends that lie side by side apart.
      const reach = (across - from.across) * (tangents[i - 1] || tangents[i] ? 1 / 3 : 1 / 2)
      const c1 = place(from.along + tangents[i - 1]! * reach, from.across + reach)
      const c2 = place(along - tangents[i]! * reach, across - reach)
      return `${path}C${c1} ${c2} ${place(along, across)}`
    }, '')
  }
}

function text(lines: string[], x: number, y: number, height: number, kind = ''): string {
  const first = y - ((lines.length - 1) * height) / 2 + 5
  const open = `<text${kind && ` class="${kind}"`} x="${px(x)}" y="${px(first)}">`
  if (lines.length === 1) return `${open}${escapeHtml(lines[0]!)}</text>`
  const spans = lines.map((line, i) => `<tspan x="${px(x)}" y="${px(first + i * height)}">${escapeHtml(line)}</tspan>`)
  return `${open}${spans.join(' ')}</text>`
}

function drawNode(canvas: Canvas, node: ChartNode, box: Box): string {
  const { x, y, width: w, height: h } = canvas.rect(box)
  const path = (d: string) => `<path class="n" d="${d}"/>`
  const rect = (radius: number) =>
    `<rect class="n" x="${px(x)}" y="${px(y)}" width="${px(w)}" height="${px(h)}" rx="${px(radius)}"/>`
  const [r, b, cx, cy] = [px(x + w), px(y + h), px(x + w / 2), px(y + h / 2)]
  const outlines: Record<ChartNode['shape'], () => string> = {
    box: () => rect(5),
    round: () => rect(Math.min(w, h) / 2),
    circle: () => rect(Math.min(w, h) / 2),
    double: () => rect(2) + path(`M${px(x + 7)} ${px(y)}V${b}M${px(x + w - 7)} ${px(y)}V${b}`),
    diamond: () => path(`M${cx} ${px(y)}L${r} ${cy}L${cx} ${b}L${px(x)} ${cy}Z`),
    hexagon: () => path(`M${px(x + 16)} ${px(y)}H${px(x + w - 16)}L${r} ${cy}L${px(x + w - 16)} ${b}H${px(x + 16)}L${px(x)} ${cy}Z`),
    slanted: () => path(`M${px(x + 14)} ${px(y)}H${r}L${px(x + w - 14)} ${b}H${px(x)}Z`),
    cylinder: () =>
      path(
        `M${px(x)} ${px(y + 6)}V${px(y + h - 6)}A${px(w / 2)} 6 0 0 0 ${r} ${px(y + h - 6)}V${px(y + 6)}` +
          `A${px(w / 2)} 6 0 0 0 ${px(x)} ${px(y + 6)}A${px(w / 2)} 6 0 0 0 ${r} ${px(y + 6)}`,
      ),
  }
  const down = node.shape === 'cylinder' ? 6 : 0
  return `<g data-node="${escapeHtml(node.id)}">${outlines[node.shape]()}${text(wrap(node.label), x + w / 2, y + h / 2 + down, LINE)}</g>`
}

function strokeOf({ line, start, end }: ChartEdge): string {
  return (
    (line === 'dotted' ? ' stroke-dasharray="4 4"' : line === 'thick' ? ' stroke-width="3"' : '') +
    (start === 'none' ? '' : ` marker-start="url(#${start})"`) +
    (end === 'none' ? '' : ` marker-end="url(#${end})"`)
  )
}

const edgeLabel = (edge: ChartEdge, { x, y }: { x: number; y: number }) =>
  edge.label ? text(wrap(edge.label), x, y - 1, 16, 'l') : ''

const named = (edge: ChartEdge, content: string) =>
  `<g data-edge="${escapeHtml(`${edge.from} ${edge.to}`)}">${content}</g>`

function drawRoute(canvas: Canvas, { edge, points, label }: Route): string {
  const line = `<path class="e" d="${canvas.curve(points)}"${strokeOf(edge)}/>`
  return named(edge, line + (label ? edgeLabel(edge, canvas.at(label)) : ''))
}

function drawLoop(canvas: Canvas, edge: ChartEdge, box: Box, label: Point): string {
  const end = box.middle.along + box.along / 2
  // Several of them may reach beyond the node: their ends do not.
  const [first, last] = [box.middle.across - box.across / 2 + 8, box.middle.across + box.across / 2 - 8]
  const onNode = (across: number) => Math.min(last, Math.max(first, across))
  const place = (along: number, across: number) => {
    const { x, y } = canvas.at({ along: end + along, across })
    return `${px(x)} ${px(y)}`
  }
  const [a, d] = [place(0, onNode(label.across - 7)), place(0, onNode(label.across + 7))]
  const [b, c] = [place(LOOP, label.across - 14), place(LOOP, label.across + 14)]
  return named(edge, `<path class="e" d="M${a}C${b} ${c} ${d}"${strokeOf(edge)}/>${edgeLabel(edge, canvas.at(label))}`)
}

const STYLE = (dark: boolean, ink: string, paper: string) =>
  `.n{fill:${dark ? '#33261f' : '#fbeee7'};stroke:${dark ? '#f0895b' : '#b0401b'};stroke-width:1.4}` +
  `.g{fill:none;stroke:${dark ? '#8c8379' : '#8f877d'};stroke-dasharray:6 4}` +
  `.e{fill:none;stroke:${ink};stroke-width:1.4}text{font:14px system-ui,sans-serif;text-anchor:middle;` +
  `fill:${dark ? '#f4efe8' : '#211f1c'}}.l{font-size:12.5px;paint-order:stroke;stroke:${paper};stroke-width:6px;` +
  `stroke-linejoin:round}.t{font-weight:600;text-anchor:start;paint-order:stroke;stroke:${paper};stroke-width:6px}`

function markers(ink: string): string {
  const marker = (id: string, refX: number, content: string) =>
    `<marker id="${id}" viewBox="0 0 10 10" refX="${refX}" refY="5" markerWidth="10" markerHeight="10" ` +
    `markerUnits="userSpaceOnUse" orient="auto-start-reverse">${content}</marker>`
  return (
    marker('arrow', 9, `<path d="M0 0.5L10 5L0 9.5Z" fill="${ink}"/>`) +
    marker('circle', 9, `<circle cx="5" cy="5" r="4" fill="${ink}"/>`) +
    marker('cross', 9, `<path d="M1 1L9 9M9 1L1 9" stroke="${ink}" stroke-width="1.6"/>`)
  )
}

const described = ({ from, to, label }: ChartEdge, chart: Chart) => {
  const name = (id: string) => (chart.nodes.get(id) ?? chart.groups.get(id))!.label.replace(/\n/g, ' ')
  return `${name(from)} → ${name(to)}${label ? ` (${label})` : ''}`
}

// The chart, or null when the text is none.
export function drawFlowchart(source: string, dark: boolean): Drawing | null {
  const chart = parseFlowchart(source)
  if (!chart) return null
  const layout = new FlowchartLayout(chart, measuresFor(chart.direction)).run()
  const canvas = new Canvas(chart.direction, layout.across)
  const [width, height] = isAcross(chart.direction) ? [layout.across, layout.along] : [layout.along, layout.across]
  const ink = dark ? '#d8d2c9' : '#4a443d'
  const groups = [...layout.groups].map(([id, box]) => {
    const { x, y, width: w, height: h } = canvas.rect(box)
    const frame = `<rect class="g" x="${px(x)}" y="${px(y)}" width="${px(w)}" height="${px(h)}" rx="8"/>`
    return `<g data-group="${escapeHtml(id)}">${frame}</g>`
  })
  const titles = [...layout.groups].map(([id, box]) => {
    const { x, y } = canvas.rect(box)
    return text([chart.groups.get(id)!.label.replace(/\n/g, ' ')], x + 12, y + 15, LINE, 't')
  })
  const loops = [...layout.loops].map(([edge, label]) => drawLoop(canvas, edge, layout.nodes.get(edge.from)!, label))
  const shown = chart.edges.filter((edge) => edge.line !== 'hidden' && !layout.impossible.includes(edge))
  const alone = [...chart.nodes.values()].filter(({ id }) => !shown.some(({ from, to }) => from === id || to === id))
  const meaning = [...shown.map((edge) => described(edge, chart)), ...alone.map(({ label }) => label)].join(', ')
  const svg =
    `<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="${escapeHtml(meaning)}" ` +
    `viewBox="0 0 ${px(width)} ${px(height)}" width="${px(width)}" style="min-width:${px(width * 0.6)}px">` +
    `<style>${STYLE(dark, ink, dark ? '#1b1a18' : '#ffffff')}</style><defs>${markers(ink)}</defs>` +
    groups.reverse().join('') +
    layout.routes.map((route) => drawRoute(canvas, route)).join('') +
    loops.join('') +
    titles.join('') +
    [...layout.nodes].map(([id, box]) => drawNode(canvas, chart.nodes.get(id)!, box)).join('') +
    `</svg>`
  return {
    svg,
    unread: [...chart.unread, ...layout.impossible.map((edge) => described(edge, chart))],
    hasStyles: chart.hasStyles,
    limit: chart.isCut ? LIMIT : null,
  }
}
