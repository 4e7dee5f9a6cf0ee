// plots.tsx  The five plots.
import { t } from '../i18n'
import { bytes, count } from '../ui/format'
import { samples, type Sample } from './history'
import { Plot, type Series } from './plot'

const COLOURS = ['--plot-1', '--plot-2', '--plot-3', '--plot-4', '--plot-5', '--plot-6']

function series(label: string, colour: number, pick: (s: Sample) => number | null, say: (n: number) => string): Series {
  const values = samples.value.map(pick)
  const last = values.findLast((value) => value !== null)
  return { label, colour: COLOURS[colour % COLOURS.length]!, values, current: last == null ? '–' : say(last) }
}

export function Plots() {
  const list = samples.value
  const times = list.map((s) => s.at)
  const rate = (n: number) => t('tokensPerSecond', { n: count(n, n < 10 ? 1 : 0) })
  const whole = (n: number) => count(n)
  const percent = (n: number) => `${count(n)} %`
  const purposes = [...new Set(list.flatMap((s) => Object.keys(s.memory)))]
  return (
    <div class="plots">
      <Plot
        title={t('throughput')}
        times={times}
        format={whole}
        isWhole
        series={[
          series(t('generated'), 0, (s) => s.generatedRate, rate),
          series(t('prompt'), 1, (s) => s.promptRate, rate),
        ]}
      />
      <Plot
        title={t('queue')}
        times={times}
        format={whole}
        isWhole
        series={[
          series(t('running'), 0, (s) => s.running, whole),
          series(t('queued'), 1, (s) => s.queued, whole),
        ]}
      />
      <Plot
        title={t('batch')}
        times={times}
        format={whole}
        isWhole
        series={[series(t('batchRows'), 2, (s) => s.batchRows, whole)]}
      />
      <Plot
        title={t('cacheReuse')}
        times={times}
        format={percent}
        top={100}
        series={[series(t('cached'), 3, (s) => s.reusePercent, percent)]}
      />
      <Plot
        title={t('memory')}
        times={times}
        format={bytes}
        isStacked
        series={purposes.map((purpose, i) => series(purpose, i, (s) => s.memory[purpose] ?? 0, bytes))}
      />
    </div>
  )
}
