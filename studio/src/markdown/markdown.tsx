// markdown.tsx  Markdown on the page. Blocks that are complete are rendered once.
import { memo } from '../ui/memo'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { openTable } from '../artefacts/open'
import { t } from '../i18n'
import { CodeView, copyButton } from './code_view'
import { splitBlocks } from './blocks'
import { renderMarkdown } from './render'

// The table as text, for the artefact with filters and sorting.
function tableRows(table: HTMLTableElement): string[][] {
  return [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent ?? ''))
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

const TextView = memo(({ text }: { text: string }) => {
  const root = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    if (!root.current) return
    root.current.innerHTML = renderMarkdown(text)
    addButtons(root.current)
  }, [text])
  return <div class="block" ref={root} />
})

// A block that takes long to render must not take every frame: after a costly one a few are skipped.
function useRestedText(text: string, isGrowing: boolean): string {
  const [shown, setShown] = useState(text)
  const cost = useRef({ began: 0, notBefore: 0 })
  useEffect(() => {
    if (!isGrowing) return setShown(text)
    const wait = Math.max(0, cost.current.notBefore - performance.now())
    const timer = setTimeout(() => {
      cost.current.began = performance.now()
      setShown(text)
    }, wait)
    return wait > 0 ? () => clearTimeout(timer) : undefined
  }, [text, isGrowing])
  useLayoutEffect(() => {
    const now = performance.now()
    cost.current.notBefore = now + 3 * (now - cost.current.began)
  }, [shown])
  return isGrowing ? shown : text
}

export function Markdown({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  const shown = useRestedText(text, isGrowing)
  const blocks = useMemo(() => splitBlocks(shown), [shown])
  return (
    <div class="markdown">
      {blocks.map((block, i) =>
        block.kind === 'code' ? (
          <CodeView key={i} language={block.language} text={block.text} isOpen={block.isOpen && isGrowing} />
        ) : (
          <TextView key={i} text={block.text} />
        ),
      )}
    </div>
  )
}
