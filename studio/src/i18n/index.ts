// index.ts  Words of the page. A new language is a file like fr.ts and a line below.
import { computed, effect } from '@preact/signals'
import { settings } from '../store/settings'
import { en, type Words } from './en'
import { fr } from './fr'

const languages: Record<string, Words> = { en, fr }

export const languageNames: Record<string, string> = { en: 'English', fr: 'Français' }

export const language = computed(() => {
  const chosen = settings.value.language
  if (chosen in languages) return chosen
  return navigator.languages.map((code) => code.slice(0, 2)).find((code) => code in languages) ?? 'en'
})

// As the browser has it for this language ("en-GB"): the order of days and months is not the same everywhere.
export const locale = computed(
  () => navigator.languages.find((code) => code.slice(0, 2) === language.value) ?? language.value,
)

effect(() => {
  document.documentElement.lang = language.value
})

// t('files', {n: 3}) puts 3 where the text says {n}.
export function t(key: keyof Words, values: Record<string, string | number> = {}): string {
  return (languages[language.value] ?? en)[key].replace(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all))
}
