// code_view.tsx  A block of code: its language, colours, a copy button, and a preview where there is something to see.
import { useLayoutEffect, useRef } from 'preact/hooks'
import { artefactOf, openArtefact } from '../artefacts/open'
import { t } from '../i18n'
import { announce } from '../ui/announcer'
import { memo } from '../ui/memo'
import { highlight } from './highlight'

export async function copyText(text: string) {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    // Clipboard access needs a secure context; a selection works everywhere.
    const area = document.createElement('textarea')
    area.value = text
    document.body.append(area)
    area.select()
    document.execCommand('copy')
    area.remove()
  }
  announce(t('copied'))
}

export function copyButton(text: () => string): HTMLButtonElement {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'quiet small'
  button.textContent = t('copyCode')
  button.addEventListener('click', () => void copyText(text()))
  return button
}

interface Props {
  language: string
  text: string
  isOpen: boolean // still being written: colours would change with every token
}

export const CodeView = memo(({ language, text, isOpen }: Props) => {
  const code = useRef<HTMLElement>(null)
  const coloured = isOpen ? null : highlight(text, language)
  useLayoutEffect(() => {
    if (!code.current) return
    if (coloured === null) code.current.textContent = text
    else code.current.innerHTML = coloured
  }, [text, coloured])
  const artefact = isOpen ? null : artefactOf(language, text)
  return (
    <figure class="code">
      <figcaption>
        <span>{language || 'text'}</span>
        <span class="buttons">
          {artefact && (
            <button type="button" class="quiet small" onClick={() => openArtefact(artefact)}>
              {t('preview')}
            </button>
          )}
          <button type="button" class="quiet small" onClick={() => void copyText(text)}>
            {t('copyCode')}
          </button>
        </span>
      </figcaption>
      <pre tabIndex={0}>
        <code ref={code} />
      </pre>
    </figure>
  )
})
