// cite.ts  The numbers of an answer, [1], as buttons that open what they name. Only those that name a source; what stands in
// code and links stays as it is.
import { t } from '../i18n'

const SKIPPED = 'a, code, pre, button, math, [data-source]'

function buttonFor(n: number, onCite: (n: number) => void): HTMLButtonElement {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'cite'
  button.textContent = `[${n}]`
  button.setAttribute('aria-label', t('citedOpen', { n }))
  button.addEventListener('click', () => onCite(n))
  return button
}

export function addCites(root: HTMLElement, numbers: Set<number>, onCite: (n: number) => void) {
  if (!numbers.size) return
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  const texts: Text[] = []
  while (walker.nextNode()) {
    const text = walker.currentNode as Text
    if (text.data.includes('[') && !text.parentElement?.closest(SKIPPED)) texts.push(text)
  }
  for (const text of texts) {
    const pieces = text.data.split(/\[(\d{1,3})\]/)
    if (pieces.length === 1) continue
    // Every second piece is a number.
    const nodes = pieces.map((piece, i) => {
      if (i % 2 === 0) return piece
      return numbers.has(Number(piece)) ? buttonFor(Number(piece), onCite) : `[${piece}]`
    })
    text.replaceWith(...nodes)
  }
}
