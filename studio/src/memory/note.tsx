// note.tsx  One note: what it says, where it came from, and correcting or forgetting it.
import { useRef, useState } from 'preact/hooks'
import type { Note } from '../api/types'
import { locale, t } from '../i18n'
import { correct, forget } from '../store/memory'

function CorrectForm({ note, onClose }: { note: Note; onClose: () => void }) {
  const [text, setText] = useState(note.text)
  return (
    <form
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        event.preventDefault()
        onClose()
      }}
      onSubmit={async (event) => {
        event.preventDefault()
        if (await correct(note, text.trim())) onClose()
      }}
    >
      <textarea
        rows={3}
        aria-label={t('correct')}
        value={text}
        ref={(area) => area?.focus()}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <div class="buttons">
        <button type="button" class="quiet" onClick={onClose}>
          {t('cancel')}
        </button>
        <button type="submit" class="main" disabled={!text.trim() || text.trim() === note.text}>
          {t('learn')}
        </button>
      </div>
    </form>
  )
}

export function NoteEntry({ note }: { note: Note }) {
  const [isEditing, setIsEditing] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const day = new Date(note.created * 1000).toLocaleDateString(locale.value, { dateStyle: 'medium', timeZone: 'UTC' })
  return (
    <li class="note">
      {isEditing ? (
        <CorrectForm
          note={note}
          onClose={() => {
            setIsEditing(false)
            requestAnimationFrame(() => button.current?.focus())
          }}
        />
      ) : (
        <>
          <p class="text">{note.text}</p>
          <footer>
            <span class="hint">{t('memoryFrom', { source: note.source, day })}</span>
            <span class="actions">
              <button type="button" class="quiet small" ref={button} onClick={() => setIsEditing(true)}>
                {t('correct')}
              </button>
              <button
                type="button"
                class="quiet small"
                onClick={() => {
                  document.getElementById('taught')?.focus() // the button goes away
                  void forget(note)
                }}
              >
                {t('forget')}
              </button>
            </span>
          </footer>
        </>
      )}
    </li>
  )
}
