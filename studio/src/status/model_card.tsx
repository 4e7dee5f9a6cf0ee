// model_card.tsx  The loaded model: what it is, how its layers follow each other, what its weights are made of.
import type { Layer, ModelCard } from '../api/types'
import { t } from '../i18n'
import { bytes, compact, count } from '../ui/format'

const MIXERS: Record<string, 'layersGdn' | 'layersAttention' | 'layersMamba'> = {
  gdn: 'layersGdn',
  attention: 'layersAttention',
  mamba: 'layersMamba',
}
const FFNS: Record<string, 'layersDense' | 'layersMoe'> = { dense: 'layersDense', moe: 'layersMoe' }

const mixerName = (mixer: string) => (MIXERS[mixer] ? t(MIXERS[mixer]) : mixer)
const ffnName = (ffn: string) => (FFNS[ffn] ? t(FFNS[ffn]) : ffn)

// "18 × Gated DeltaNet, 6 × attention"
function tally(names: string[]): string {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].map(([name, n]) => `${n} × ${name}`).join(', ')
}

function Strip({ layers }: { layers: Layer[] }) {
  const mixers = [...new Set(layers.map((l) => l.mixer))].filter((m) => m !== 'none')
  const ffns = [...new Set(layers.map((l) => l.ffn))].filter((f) => f !== 'none')
  const words =
    `${layers.length} ${t('layers')}: ` +
    tally([...layers.map((l) => l.mixer).filter((m) => m !== 'none').map(mixerName)]) +
    ', ' +
    tally([...layers.map((l) => l.ffn).filter((f) => f !== 'none').map(ffnName)])
  return (
    <div class="layers">
      <h3>
        {t('layers')} <span class="hint">{layers.length}</span>
      </h3>
      <div class="strip" role="img" aria-label={words}>
        {layers.map((layer, i) => (
          <span key={i} class="layer" title={`${i}: ${mixerName(layer.mixer)}, ${ffnName(layer.ffn)}`}>
            <span class={`mixer ${layer.mixer}`} />
            <span class={`ffn ${layer.ffn}`} />
          </span>
        ))}
      </div>
      <ul class="legend">
        {mixers.map((mixer) => (
          <li key={mixer}>
            <span class={`swatch mixer ${mixer}`} aria-hidden="true" />
            {mixerName(mixer)} × {layers.filter((l) => l.mixer === mixer).length}
          </li>
        ))}
        {ffns.map((ffn) => (
          <li key={ffn}>
            <span class={`swatch ffn ${ffn}`} aria-hidden="true" />
            {ffnName(ffn)} × {layers.filter((l) => l.ffn === ffn).length}
          </li>
        ))}
      </ul>
    </div>
  )
}

function Formats({ formats }: { formats: ModelCard['formats'] }) {
  const total = formats.reduce((sum, f) => sum + f.bytes, 0) || 1
  return (
    <div class="formats">
      <h3>{t('formats')}</h3>
      <ul>
        {[...formats]
          .sort((a, b) => b.bytes - a.bytes)
          .map((format) => (
            <li key={format.type}>
              <span class="type">{format.type}</span>
              <span class="bar" aria-hidden="true">
                <span style={{ width: `${(100 * format.bytes) / total}%` }} />
              </span>
              <span class="size">
                {bytes(format.bytes)} · {count(format.tensors)}
              </span>
            </li>
          ))}
      </ul>
    </div>
  )
}

export function ModelCardView({ model }: { model: ModelCard }) {
  const facts: [string, string][] = [
    [t('modelArchitecture'), model.architecture],
    [t('modelBackend'), model.backend.toUpperCase()],
    [t('modelParameters'), compact(model.parameters)],
    [t('modelFile'), bytes(model.file_bytes)],
    [t('modelContext'), t('tokens', { n: count(model.context_length) })],
    [t('modelVocabulary'), count(model.vocabulary)],
  ]
  if (model.experts) {
    facts.push([t('modelExperts'), t('modelExpertsOf', { used: model.experts_used, all: model.experts })])
  }
  return (
    <section class="card" aria-labelledby="model-title">
      <h2 id="model-title">{model.name}</h2>
      <dl>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Strip layers={model.layers} />
      <Formats formats={model.formats} />
    </section>
  )
}
