// prompts.tsx  The library of prompts in the settings: writing, changing and deleting them.
import { useRef, useState } from 'preact/hooks'
import { t } from '../i18n'
import { promptName, removePrompt, savePrompt } from '../store/library'
import { settings, type Prompt } from '../store/settings'
import { Trash } from '../ui/icons'
import { offer } from '../ui/notice'

export function Prompts() {
  const [name, setName] = useState('')
  const [text, setText] = useState('')
  const field = useRef<HTMLTextAreaElement>(null)
  const edit = (prompt: Prompt) => {
    setName(prompt.name)
    setText(prompt.text)
    field.current?.focus()
  }
  const remove = (prompt: Prompt) => {
    field.current?.focus() // the button goes away
    removePrompt(prompt.name)
    offer(t('deleted', { title: `/${prompt.name}` }), t('undo'), () => savePrompt(prompt))
  }
  return (
    <fieldset class="library">
      <legend>{t('prompts')}</legend>
      <p class="hint">{t('promptsHint')}</p>
      {settings.value.prompts.length > 0 && (
        <ul>
          {settings.value.prompts.map((prompt) => (
            <li key={prompt.name} class="line">
              <button type="button" class="quiet small name" title={prompt.text} onClick={() => edit(prompt)}>
                /{prompt.name}
              </button>
              <button
                type="button"
                class="quiet small"
                aria-label={t('promptDelete', { name: prompt.name })}
                onClick={() => remove(prompt)}
              >
                <Trash />
              </button>
            </li>
          ))}
        </ul>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          savePrompt({ name: promptName(name), text })
          setName('')
          setText('')
        }}
      >
        <input
          aria-label={t('promptName')}
          placeholder={t('promptName')}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <textarea
          ref={field}
          rows={3}
          aria-label={t('promptText')}
          placeholder={t('promptText')}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit" class="small" disabled={!promptName(name) || !text.trim()}>
          {t('promptSave')}
        </button>
      </form>
    </fieldset>
  )
}
