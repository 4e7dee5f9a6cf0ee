// markdown.tsx  Markdown on the page. Blocks that are complete are rendered once.
import { memo } from '../ui/memo'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { openTable } from '../artefacts/open'
import { t } from '../i18n'
import { addCites } from './cite'
import { CodeView, copyButton } from './code_view'
import { splitBlocks } from './blocks'
import { extractFormulas } from './formulas'
import { mathLibrary, placeFormulas } from './maths'
import { renderMarkdown } from './render'

// A formula counts as what was written for it.
function cellText(cell: HTMLTableCellElement): string {
  const copy = cell.cloneNode(true) as HTMLElement
  for (const formula of copy.querySelectorAll<HTMLElement>('[data-source]')) formula.replaceWith(formula.dataset.source!)
  return copy.textContent ?? ''
}

// The table as text, for the artefact with filters and sorting.
function tableRows(table: HTMLTableElement): string[][] {
  return [...table.rows].map((row) => [...row.cells].map(cellText))
}

// Buttons are added to the finished HTML as elements: no text of the model takes part.
function addButtons(root: HTMLElement) {
  for (const pre of root.querySelectorAll('pre')) {
    pre.tabIndex = 0
    pre.after(copyButton(() => pre.textContent ?? ''))
  }
  for (const table of root.querySelectorAll('table')) {
    const scroller = document.createElement('div')
    scroller.className = 'table-scroller'
    scroller.tabIndex = 0
    scroller.setAttribute('role', 'region')
    scroller.setAttribute('aria-label', t('artefactTable'))
    table.replaceWith(scroller)
    scroller.append(table)
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'quiet small'
    button.textContent = t('sortAndFilter')
    button.addEventListener('click', () => openTable(tableRows(table)))
    scroller.after(button)
  }
}

// The numbers of sources, as text, so that equal ones are equal; and who is told which of them was pressed.
interface Cites {
  cited?: string
  onCite?: (n: number) => void
}

const TextView = memo(({ text, isGrowing, cited = '', onCite }: { text: string; isGrowing: boolean } & Cites) => {
  const root = useRef<HTMLDivElement>(null)
  const extracted = useMemo(() => extractFormulas(text, isGrowing), [text, isGrowing])
  const temml = extracted.formulas.some((formula) => formula.tex !== null) ? mathLibrary() : null
  useLayoutEffect(() => {
    if (!root.current) return
    root.current.innerHTML = renderMarkdown(extracted.text)
    placeFormulas(root.current, extracted.formulas, temml)
    addButtons(root.current)
    if (cited && onCite) addCites(root.current, new Set(cited.split(',').map(Number)), onCite)
  }, [extracted, temml, cited])
  return <div class="block" ref={root} />
})

// Rendering takes at most a quarter of the page's time while it is quick, and never waits longer than this: with a frame
// before it and a slow rendering after it, a token is still on the screen within 100 ms.
const LONGEST_REST_MS = 50

// The text to render now. After a costly rendering the page rests, and what came meanwhile is shown together.
function useRestedText(text: string, isGrowing: boolean): string {
  const shown = useRef(text)
  const restsUntil = useRef(0)
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)
  const [, renderAgain] = useState({})
  const began = performance.now()
  if (!isGrowing || began >= restsUntil.current) shown.current = text
  useLayoutEffect(() => {
    const now = performance.now()
    restsUntil.current = now + Math.min(3 * (now - began), LONGEST_REST_MS)
  }, [shown.current])
  // One timer that is never put off: it renders whatever text has come by then. The rest is over when it rings, not when
  // the clock says so: browsers cut a delay to whole milliseconds, and a timer that rang too early would be the last.
  useLayoutEffect(() => {
    if (shown.current === text || timer.current !== null) return
    timer.current = setTimeout(() => {
      timer.current = null
      restsUntil.current = 0
      renderAgain({})
    }, restsUntil.current - performance.now())
  }, [text, shown.current])
  useEffect(() => () => clearTimeout(timer.current ?? undefined), [])
  return shown.current
}

export function Markdown({ text, isGrowing, ...cites }: { text: string; isGrowing: boolean } & Cites) {
  const shown = useRestedText(text, isGrowing)
  const blocks = useMemo(() => splitBlocks(shown), [shown])
  return (
    <div class="markdown">
      {blocks.map((block, i) =>
        block.kind === 'code' ? (
          <CodeView key={i} language={block.language} text={block.text} isOpen={block.isOpen && isGrowing} />
        ) : (
          <TextView key={i} text={block.text} isGrowing={isGrowing && i === blocks.length - 1} {...cites} />
        ),
      )}
    </div>
  )
}
