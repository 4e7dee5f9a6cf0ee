// highlight.ts  Colours for code; loaded when the first code block appears.
import { signal } from '@preact/signals'
import type { HLJSApi } from 'highlight.js'
import { sanitize, type SafeHtml } from './render'

const library = signal<HLJSApi | null>(null)
let loading: Promise<void> | null = null

// Longer code is shown without colours: the grammars are regular expressions and take their time.
const LIMIT = 100_000

export function highlight(code: string, language: string): SafeHtml | null {
  const hljs = library.value
  if (!hljs) {
    loading ??= import('highlight.js/lib/common').then((module) => {
      library.value = module.default
    })
    return null
  }
  if (code.length > LIMIT || !hljs.getLanguage(language)) return null
  return sanitize(hljs.highlight(code, { language, ignoreIllegals: true }).value)
}
