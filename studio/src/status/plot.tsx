// plot.tsx  A plot over time, on uPlot. What it shows last is said in text too, for those who do not see it.
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { language } from '../i18n'
import { isDark } from '../store/settings'

export interface Series {
  label: string
  colour: string // name of a custom property
  values: (number | null)[]
  current: string // the last value in words
}

interface Props {
  title: string
  times: number[]
  series: Series[]
  isStacked?: boolean
  top?: number // of the axis, when it is known
  isWhole?: boolean // counts have no halves
  format: (value: number) => string
}

const WHOLE_STEPS = [1, 2, 5].flatMap((n) => [1, 10, 100, 1e3, 1e4, 1e5, 1e6].map((ten) => n * ten)).sort((a, b) => a - b)

const clock = (seconds: number) => new Date(seconds * 1000).toLocaleTimeString(language.value, { hourCycle: 'h23' })

const HEIGHT = 170

// Stacked: every series is drawn on top of those after it in the list.
function columns({ times, series, isStacked }: Props): uPlot.AlignedData {
  if (!isStacked) return [times, ...series.map((s) => s.values)]
  const sums: number[][] = []
  for (let i = series.length - 1; i >= 0; i--) {
    sums[i] = series[i]!.values.map((value, at) => (value ?? 0) + (sums[i + 1]?.[at] ?? 0))
  }
  return [times, ...sums]
}

function options(props: Props, width: number): uPlot.Options {
  const style = getComputedStyle(document.documentElement)
  const colour = (name: string) => style.getPropertyValue(name).trim()
  const axis = {
    stroke: colour('--text-soft'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  }
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: {
      y: {
        range: (_plot, _min, max) => [0, props.top ?? Math.max(1, (max ?? 0) * 1.15)],
      },
    },
    axes: [
      { ...axis, size: 30, space: 90, values: (_plot, ticks) => ticks.map(clock) },
      {
        ...axis,
        size: 62,
        ...(props.isWhole ? { incrs: WHOLE_STEPS } : {}),
        values: (_plot, ticks) => ticks.map((tick) => props.format(tick)),
      },
    ],
    series: [
      {},
      ...props.series.map((s) => ({
        stroke: colour(s.colour),
        width: 2,
        ...(props.isStacked ? { fill: colour(s.colour) } : {}),
        // A value with no neighbours would not show as a line.
        points: props.isStacked ? { show: false } : { size: 4, fill: colour(s.colour) },
        spanGaps: true,
      })),
    ],
  }
}

export function Plot(props: Props) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const shape = props.series.map((s) => s.label).join('\n') + isDark.value
  useEffect(() => {
    const box = place.current!
    const made = new uPlot(options(props, box.clientWidth), columns(props), box)
    plot.current = made
    const observer = new ResizeObserver(() => made.setSize({ width: box.clientWidth, height: HEIGHT }))
    observer.observe(box)
    return () => {
      observer.disconnect()
      made.destroy()
      plot.current = null
    }
  }, [shape])
  useEffect(() => plot.current?.setData(columns(props)), [props.times])
  return (
    <figure class="plot">
      <figcaption>
        <h3>{props.title}</h3>
        <ul>
          {props.series.map((s) => (
            <li key={s.label}>
              <span class="swatch" style={{ background: `var(${s.colour})` }} aria-hidden="true" />
              {s.label} <strong>{s.current}</strong>
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={place} class="canvas" aria-hidden="true" data-samples={props.times.length} />
    </figure>
  )
}
