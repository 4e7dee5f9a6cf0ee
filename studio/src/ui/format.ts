// format.ts  Numbers as people read them, in the language of the page.
import { language, locale } from '../i18n'

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB']

export function bytes(n: number): string {
  let unit = 0
  while (n >= 1000 && unit < UNITS.length - 1) {
    n /= 1000
    unit++
  }
  return `${count(n, n < 10 && unit > 0 ? 1 : 0)} ${UNITS[unit]}`
}

export const count = (n: number, digits = 0) =>
  n.toLocaleString(language.value, { maximumFractionDigits: digits, minimumFractionDigits: 0 })

export const compact = (n: number) =>
  n.toLocaleString(language.value, { notation: 'compact', maximumFractionDigits: 1 })

// "62 %"; nothing of nothing is nothing.
export function share(part: number, of: number): string {
  return of > 0 ? `${Math.round((100 * part) / of)} %` : ''
}

export const day = (seconds: number) =>
  new Date(seconds * 1000).toLocaleDateString(locale.value, { dateStyle: 'medium' })

export const dayAndTime = (seconds: number) =>
  new Date(seconds * 1000).toLocaleString(locale.value, { dateStyle: 'medium', timeStyle: 'short' })

// Of something that takes moments.
export function milliseconds(ms: number): string {
  if (ms < 1) return '< 1 ms'
  return ms < 1000 ? `${count(ms)} ms` : `${count(ms / 1000, 1)} s`
}

export function duration(seconds: number): string {
  const s = Math.floor(seconds)
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
}
