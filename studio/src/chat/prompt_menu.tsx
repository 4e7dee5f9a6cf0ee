// prompt_menu.tsx  Prompts that are inserted by their name: /name in the composer opens a list of those that fit.
import type { RefObject } from 'preact'
import { useState } from 'preact/hooks'
import { t } from '../i18n'
import { settings, type Prompt } from '../store/settings'

// The name that is being typed right before the caret, behind a slash at the beginning of a word.
const TYPED = /(?:^|\s)\/([\p{L}\d_-]*)$/u

interface Menu {
  list: Prompt[]
  selected: number
  onKey: (event: KeyboardEvent) => boolean // whether the key was the menu's
  look: () => void // when the text or the caret has moved
  insert: (prompt: Prompt) => void
}

export function usePromptMenu(area: RefObject<HTMLTextAreaElement>, onText: (text: string) => void): Menu {
  const [typed, setTyped] = useState<{ name: string; end: number } | null>(null)
  const [moved, setSelected] = useState(0)
  const list = typed ? settings.value.prompts.filter(({ name }) => name.startsWith(typed.name.toLowerCase())) : []
  const selected = Math.min(moved, list.length - 1)

  const look = () => {
    const end = area.current?.selectionEnd ?? 0
    const name = TYPED.exec(area.current?.value.slice(0, end) ?? '')?.[1]
    if (name !== typed?.name) setSelected(0)
    setTyped(name === undefined ? null : { name, end })
  }
  const insert = ({ text }: Prompt) => {
    const field = area.current
    if (!field || !typed) return
    const from = typed.end - typed.name.length - 1
    const whole = field.value.slice(0, from) + text + field.value.slice(typed.end)
    onText(whole)
    setTyped(null)
    requestAnimationFrame(() => {
      field.focus()
      field.setSelectionRange(from + text.length, from + text.length)
    })
  }
  const onKey = (event: KeyboardEvent) => {
    if (!list.length) return false
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step) setSelected((selected + step + list.length) % list.length)
    else if (event.key === 'Enter' || event.key === 'Tab') insert(list[selected]!)
    else if (event.key === 'Escape') setTyped(null)
    else return false
    event.preventDefault()
    return true
  }
  return { list, selected, onKey, look, insert }
}

const optionId = (at: number) => `prompt-${at}`

// For the text area, so that a screen reader says which one is chosen.
export const menuAria = ({ list, selected }: Menu) =>
  list.length
    ? ({ 'aria-autocomplete': 'list', 'aria-controls': 'prompts', 'aria-activedescendant': optionId(selected) } as const)
    : {}

export function PromptMenu({ list, selected, insert }: Menu) {
  if (!list.length) return null
  return (
    <ul class="prompt-menu" id="prompts" role="listbox" aria-label={t('prompts')}>
      {list.map((prompt, i) => (
        <li
          key={prompt.name}
          id={optionId(i)}
          role="option"
          aria-selected={i === selected}
          onMouseDown={(event) => event.preventDefault()} // the focus stays in the text
          onClick={() => insert(prompt)}
        >
          <b>/{prompt.name}</b> <span>{prompt.text}</span>
        </li>
      ))}
    </ul>
  )
}
