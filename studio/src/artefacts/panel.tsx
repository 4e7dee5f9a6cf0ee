// panel.tsx  The open artefact beside the chat, in a frame that can reach neither the page nor a network.
import { useEffect, useRef, useState } from 'preact/hooks'
import { t } from '../i18n'
import { CodeView, copyText } from '../markdown/code_view'
import { isDark } from '../store/settings'
import { artefactDocument } from './documents'
import { closeArtefact, openedArtefact, type Artefact, type ArtefactKind } from './open'

const TITLES: Record<ArtefactKind, 'artefactHtml' | 'artefactSvg' | 'artefactDiagram' | 'artefactTable'> = {
  html: 'artefactHtml',
  svg: 'artefactSvg',
  diagram: 'artefactDiagram',
  table: 'artefactTable',
}

const LANGUAGES: Record<ArtefactKind, string> = { html: 'html', svg: 'xml', diagram: 'mermaid', table: 'csv' }

function Frame({ artefact }: { artefact: Artefact }) {
  const frame = useRef<HTMLIFrameElement>(null)
  const dark = isDark.value
  const isSent = useRef(false)
  // Once: what a document in the frame loads next gets nothing. The frame's origin is opaque, so '*' is its only name.
  const send = () => {
    if (isSent.current) return
    isSent.current = true
    frame.current?.contentWindow?.postMessage({ html: artefactDocument(artefact, dark) }, '*')
  }
  return (
    <iframe
      ref={frame}
      title={t(TITLES[artefact.kind])}
      sandbox="allow-scripts"
      referrerpolicy="no-referrer"
      src="/studio/frame.html"
      onLoad={send}
    />
  )
}

export function ArtefactPanel() {
  const artefact = openedArtefact.value
  const [isSource, setIsSource] = useState(false)
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    setIsSource(false)
    heading.current?.focus()
  }, [artefact])
  if (!artefact) return null
  return (
    <aside class="artefact" aria-label={t('artefact')}>
      <header>
        <h2 tabIndex={-1} ref={heading}>
          {t(TITLES[artefact.kind])}
        </h2>
        <button type="button" class="quiet small" aria-pressed={isSource} onClick={() => setIsSource(!isSource)}>
          {t('source')}
        </button>
        <button type="button" class="quiet small" onClick={() => void copyText(artefact.source)}>
          {t('copy')}
        </button>
        <button type="button" class="quiet small" onClick={closeArtefact}>
          {t('close')}
        </button>
      </header>
      {isSource ? (
        <div class="source">
          <CodeView language={LANGUAGES[artefact.kind]} text={artefact.source} isOpen={false} />
        </div>
      ) : (
        <Frame key={`${isDark.value} ${artefact.source}`} artefact={artefact} />
      )}
    </aside>
  )
}
