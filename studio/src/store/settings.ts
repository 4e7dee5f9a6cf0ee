// settings.ts  What the user chose, kept in local storage. A field that is not set leaves the choice to the server.
import { effect, signal } from '@preact/signals'

export interface Sampling {
  temperature?: number
  top_p?: number
  top_k?: number
  min_p?: number
  presence_penalty?: number
  repetition_penalty?: number
  max_tokens?: number
  thinking_budget?: number
  seed?: number
}

// How a thought is steered, as `thinking_control` has it.
export const THINKING_MODES = ['off', 'fast', 'quality', 'ultra'] as const
export type ThinkingMode = (typeof THINKING_MODES)[number]
export const thinkingMode = (text: unknown) => THINKING_MODES.find((mode) => mode === text) ?? ''

export interface Preset {
  name: string
  system: string
  thinking: Settings['thinking']
  thinkingMode: Settings['thinkingMode']
  sampling: Sampling
}

export interface Prompt {
  name: string
  text: string
}

// What of the server's memory is used.
export interface EngramChoice {
  tables: string[]
  passages: string // '' is none
  notes: boolean
}

export interface Settings {
  theme: 'auto' | 'light' | 'dark'
  language: string // 'auto' or a code
  model: string // '' is the server's own
  thinking: 'auto' | 'on' | 'off'
  thinkingMode: '' | ThinkingMode // '' leaves it to the server
  heat: 'off' | 'on' // ask for the certainty of every token and show it
  tools: string // JSON text of OpenAI tools
  sampling: Sampling
  presets: Preset[]
  prompts: Prompt[]
  lora: Record<string, number> // scales of the adapters that are used
  engram: EngramChoice
  user: string // whose memory it is
  keepOnServer: boolean // conversations are there, too
}

const KEY = 'chimere.settings'
const initial: Settings = {
  theme: 'auto',
  language: 'auto',
  model: '',
  thinking: 'auto',
  thinkingMode: '',
  heat: 'off',
  tools: '',
  sampling: {},
  lora: {},
  engram: { tables: [], passages: '', notes: true },
  user: 'me',
  keepOnServer: false,
  presets: [],
  prompts: [],
}

function load(): Settings {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? '{}')
    const known = Object.fromEntries(Object.entries(stored).filter(([name]) => name in initial))
    return { ...initial, ...known, sampling: { ...stored.sampling } }
  } catch {
    return initial
  }
}

export const settings = signal<Settings>(load())

export function change(part: Partial<Settings>) {
  settings.value = { ...settings.value, ...part }
}

// Another page of this browser changed them.
addEventListener('storage', (event) => {
  if (event.key === KEY) settings.value = load()
})

effect(() => {
  try {
    localStorage.setItem(KEY, JSON.stringify(settings.value))
  } catch {
    // A full or forbidden storage costs the next visit its settings and nothing else.
  }
})

const prefersDark = matchMedia('(prefers-color-scheme: dark)')
export const isDark = signal(false)

function applyTheme() {
  const theme = settings.value.theme
  isDark.value = theme === 'dark' || (theme === 'auto' && prefersDark.matches)
  document.documentElement.dataset.theme = isDark.value ? 'dark' : 'light'
}
prefersDark.addEventListener('change', applyTheme)
effect(applyTheme)
