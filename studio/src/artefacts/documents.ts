// documents.ts  An artefact as a document for the sandboxed frame. What is written here runs there, never on the page.
import { t } from '../i18n'
import { escapeHtml } from '../markdown/escape'
import { drawFlowchart } from './flowchart'
import type { Artefact } from './open'

const style = (dark: boolean) => `
:root { color-scheme: ${dark ? 'dark' : 'light'}; }
body { margin: 0; padding: 12px; font: 15px/1.5 system-ui, sans-serif; background: ${dark ? '#1b1a18' : '#ffffff'};
  color: ${dark ? '#ece8e2' : '#211f1c'}; }
svg { max-width: 100%; height: auto; }
input { font: inherit; width: 100%; box-sizing: border-box; margin-bottom: 10px; padding: 6px 8px; }
aside { font-size: 13px; color: ${dark ? '#b0a89e' : '#5f5952'}; }
aside p, aside ul { margin: 6px 0; }
table { border-collapse: collapse; width: 100%; }
th, td { border: 1px solid ${dark ? '#4a4641' : '#cfc9c1'}; padding: 4px 8px; text-align: left; }
th button { all: unset; cursor: pointer; font-weight: 600; width: 100%; }
th button:focus-visible { outline: 2px solid; }`

// Data in a script element: no text may end the element.
const inScript = (data: unknown) => JSON.stringify(data).replace(/</g, '\\u003c')

function page(body: string, dark: boolean): string {
  return `<!doctype html><meta charset="utf-8"><style>${style(dark)}</style><body>${body}`
}

const TABLE_SCRIPT = `
const body = document.querySelector('tbody'), filter = document.querySelector('input');
let sorted = -1, down = false;
function show() {
  const words = filter.value.toLowerCase();
  let rows = data.filter((row) => row.some((cell) => cell.toLowerCase().includes(words)));
  if (sorted >= 0) {
    const order = new Intl.Collator(undefined, { numeric: true });
    rows = [...rows].sort((a, b) => order.compare(a[sorted] ?? '', b[sorted] ?? '') * (down ? -1 : 1));
  }
  body.replaceChildren(...rows.map((row) => {
    const line = document.createElement('tr');
    line.append(...head.map((_, i) => {
      const cell = document.createElement('td');
      cell.textContent = row[i] ?? '';
      return cell;
    }));
    return line;
  }));
  document.querySelectorAll('th').forEach((cell, i) =>
    cell.setAttribute('aria-sort', i !== sorted ? 'none' : down ? 'descending' : 'ascending'));
}
document.querySelectorAll('th button').forEach((button, i) => button.addEventListener('click', () => {
  down = sorted === i && !down;
  sorted = i;
  show();
}));
filter.addEventListener('input', show);
show();`

function table(rows: string[][], dark: boolean): string {
  const [head = [], ...data] = rows
  const columns = head.map((name) => `<th scope="col"><button>${escapeHtml(name)}</button></th>`).join('')
  const label = escapeHtml(t('filter'))
  return page(
    `<input type="search" aria-label="${label}" placeholder="${label}">` +
      `<table><thead><tr>${columns}</tr></thead><tbody></tbody></table>` +
      `<script>const head = ${inScript(head)}, data = ${inScript(data)};${TABLE_SCRIPT}</script>`,
    dark,
  )
}

// What is not in the drawing is said below it.
function diagram(source: string, dark: boolean): string {
  const drawing = drawFlowchart(source, dark)
  if (!drawing) return page(escapeHtml(t('artefactEmpty')), dark)
  const { svg, unread, hasStyles, limit } = drawing
  const lines = unread.slice(0, 20).map((line) => `<li><code>${escapeHtml(line)}</code></li>`)
  const notes = [
    ...(limit ? [`<p>${escapeHtml(t('diagramCut', { n: String(limit) }))}</p>`] : []),
    ...(lines.length ? [`<p>${escapeHtml(t('diagramUnread'))}</p><ul>${lines.join('')}</ul>`] : []),
    ...(hasStyles ? [`<p>${escapeHtml(t('diagramStyles'))}</p>`] : []),
  ]
  return page(svg + (notes.length ? `<aside>${notes.join('')}</aside>` : ''), dark)
}

export function artefactDocument(artefact: Artefact, dark: boolean): string {
  switch (artefact.kind) {
    case 'html':
      return artefact.source
    case 'svg':
      return page(artefact.source, dark)
    case 'diagram':
      return diagram(artefact.source, dark)
    case 'table':
      return table(artefact.rows ?? [], dark)
  }
}
