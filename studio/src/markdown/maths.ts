// maths.ts  Formulas as MathML, which browsers draw themselves. Temml, which makes it of TeX, is loaded with the first one.
//
// Temml builds elements, no HTML, so nothing is parsed; what it built is checked against a short list all the same. Its
// commands that could name an address, a class or an id are off, macros may not expand without end, nor sizes grow.
import { signal } from '@preact/signals'
import type Temml from 'temml'
import { MARK, type Formula } from './formulas'

type Library = typeof Temml

const library = signal<Library | null>(null)
let loading: Promise<void> | null = null

export function mathLibrary(): Library | null {
  loading ??= import('temml').then((module) => {
    library.value = module.default
  })
  return library.value
}

const MATHML = 'http://www.w3.org/1998/Math/MathML'
const ELEMENTS = new Set(
  (
    'math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle msub ' +
    'msubsup msup mtable mtd mtext mtr munder munderover none'
  ).split(' '),
)
const ATTRIBUTES = new Set(
  (
    'accent accentunder class columnalign columnspan depth display displaystyle fence form height largeop linethickness ' +
    'lspace mathbackground mathcolor mathvariant maxsize minsize movablelimits notation rowspan rspace scriptlevel ' +
    'separator stretchy style symmetric voffset width'
  ).split(' '),
)

function isHarmless(root: Element): boolean {
  for (const element of root.querySelectorAll('*')) {
    if (element.namespaceURI !== MATHML || !ELEMENTS.has(element.localName)) return false
    for (const name of element.getAttributeNames()) if (!ATTRIBUTES.has(name)) element.removeAttribute(name)
  }
  return true
}

// A growing block is rendered again with each token; its formulas are not.
const made = new Map<string, HTMLElement | null>()
const MOST_KEPT = 500

function make(temml: Library, tex: string, isBlock: boolean): HTMLElement | null {
  const box = document.createElement('span')
  box.className = isBlock ? 'formula block-formula' : 'formula'
  const limits = { trust: false, throwOnError: true, maxSize: [50, 50] as [number, number], maxExpand: 500, macros: {} }
  try {
    temml.render(tex, box, { ...limits, displayMode: isBlock })
  } catch {
    // Not TeX, or more than the limits allow: its text is shown.
    return null
  }
  return isHarmless(box) ? box : null
}

function formulaElement(temml: Library, { source, tex, isBlock }: Formula): HTMLElement | null {
  if (tex === null) return null
  const key = `${isBlock} ${tex}`
  if (!made.has(key)) {
    if (made.size >= MOST_KEPT) made.clear()
    made.set(key, make(temml, tex, isBlock))
  }
  const element = made.get(key)?.cloneNode(true) as HTMLElement | undefined
  if (element) element.dataset.source = source
  return element ?? null
}

// Fonts that were not made for mathematics do not say how far a subscript goes down, and some browsers then leave it on the
// line. One look at one tells, and styles see to it (`data-maths`).
let isFontKnown = false

function lookAtFont(temml: Library) {
  if (isFontKnown) return
  isFontKnown = true
  const probe = make(temml, 'x_x', false)!
  document.body.append(probe)
  const [base, below] = [...probe.querySelectorAll('mi')].map((letter) => letter.getBoundingClientRect().bottom)
  probe.remove()
  if (below! <= base! + 1) document.documentElement.dataset.maths = 'plain-font'
}

// Puts the formulas where their marks are. In code, and until the library is there, that is their source.
export function placeFormulas(root: HTMLElement, formulas: Formula[], temml: Library | null) {
  if (!formulas.length) return
  if (temml) lookAtFont(temml)
  const sourceOf = (text: string) => text.replace(MARK, (_, i) => formulas[Number(i)]?.source ?? '')
  const texts: Text[] = []
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) texts.push(walker.currentNode as Text)
  for (const text of texts) {
    if (!text.data.match(MARK)) continue
    if (text.parentElement!.closest('code')) {
      text.data = sourceOf(text.data)
      continue
    }
    // Odd pieces are the numbers of formulas.
    const pieces = text.data.split(MARK).map((piece, i) => {
      const formula = i % 2 ? formulas[Number(piece)] : undefined
      return formula ? ((temml && formulaElement(temml, formula)) ?? formula.source) : piece
    })
    text.replaceWith(...pieces)
  }
  for (const element of root.querySelectorAll('[alt], [title]')) {
    for (const name of ['alt', 'title']) {
      const value = element.getAttribute(name)
      if (value) element.setAttribute(name, sourceOf(value))
    }
  }
  // A line of text that a formula does not fit into: it gets one of its own, where it can be scrolled.
  for (const formula of root.querySelectorAll('.formula')) {
    if (formula.scrollWidth > formula.clientWidth) formula.classList.add('block-formula')
  }
}
