// library.ts  What a person made to be used again: presets (a system prompt, sampling, thinking) and prompts (texts with a
// name). Part of the settings, each under a name of its own.
import { openSystem, setOpenSystem } from './conversations'
import { change, settings, type Preset, type Prompt, type Sampling } from './settings'

const byName = <T extends { name: string }>(list: T[]) => [...list].sort((a, b) => a.name.localeCompare(b.name))

// One of a name: the newer stands for the older.
const withOne = <T extends { name: string }>(list: T[], one: T) => byName([...list.filter((o) => o.name !== one.name), one])

export const savePrompt = (prompt: Prompt) => change({ prompts: withOne(settings.value.prompts, prompt) })

export const removePrompt = (name: string) =>
  change({ prompts: settings.value.prompts.filter((prompt) => prompt.name !== name) })

// What is typed behind the slash: no blanks, one case.
export const promptName = (text: string) =>
  text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\d_-]+/gu, '-')
    .replace(/^-+|-+$/g, '')

export function savePreset(name: string) {
  const { thinking, thinkingMode, sampling, presets } = settings.value
  change({ presets: withOne(presets, { name, system: openSystem(), thinking, thinkingMode, sampling }) })
}

export const removePreset = (name: string) =>
  change({ presets: settings.value.presets.filter((preset) => preset.name !== name) })

export function applyPreset({ system, thinking, thinkingMode = '', sampling }: Preset) {
  change({ thinking, thinkingMode, sampling })
  setOpenSystem(system)
}

const isSame = (a: Sampling, b: Sampling) =>
  [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => a[key as keyof Sampling] === b[key as keyof Sampling])

// The preset that holds now, if any does.
export const currentPreset = () =>
  settings.value.presets.find(
    ({ system, thinking, thinkingMode = '', sampling }) =>
      system === openSystem() &&
      thinking === settings.value.thinking &&
      thinkingMode === settings.value.thinkingMode &&
      isSame(sampling, settings.value.sampling),
  )

export interface Library {
  presets: Preset[]
  prompts: Prompt[]
}

export function addLibrary({ presets, prompts }: Library) {
  change({
    presets: presets.reduce(withOne<Preset>, settings.value.presets),
    prompts: prompts.reduce(withOne<Prompt>, settings.value.prompts),
  })
}
