// screen.tsx  What the server was taught: every note with where it came from, and the ways to add, correct and forget.
import { useEffect, useState } from 'preact/hooks'
import { language, t } from '../i18n'
import { canLearn, forgetAll, learn, loadNotes, memory, notes } from '../store/memory'
import { isOnline } from '../store/session'
import { change, settings } from '../store/settings'
import { confirmThen } from '../ui/dialog'
import { bytes, count } from '../ui/format'
import { LearningSection } from './learning'
import { NoteEntry } from './note'

// What is typed stays while notes arrive; it counts when the field is left.
function OwnerField() {
  const { user } = settings.value
  const [text, setText] = useState(user)
  useEffect(() => setText(user), [user])
  const take = (given: string) => {
    setText(given.trim() || user)
    change({ user: given.trim() || user })
  }
  return (
    <label class="owner">
      {t('memoryOwner')}
      <input
        value={text}
        required
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={(event) => take(event.currentTarget.value)}
      />
    </label>
  )
}

function TeachForm() {
  const [text, setText] = useState('')
  return (
    <form
      onSubmit={async (event) => {
        event.preventDefault()
        if (await learn(text.trim(), t('memoryByHand'))) setText('')
      }}
    >
      <label>
        {t('memoryTeach')}
        <textarea rows={3} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <button type="submit" class="main" disabled={!text.trim()}>
        {t('learn')}
      </button>
    </form>
  )
}

function Room() {
  const own = memory.value?.own
  const limit = memory.value?.limits?.own
  if (!limit) return null
  const used = { n: count(own?.notes ?? 0), size: bytes(own?.bytes ?? 0), limit: bytes(limit.bytes) }
  return <p class="hint">{t('memoryRoom', used)}</p>
}

export function MemoryScreen() {
  const { user } = settings.value
  useEffect(() => void loadNotes(), [user, canLearn.value])
  const list = notes.value
  return (
    <main id="content" class="memory" tabIndex={-1} aria-label={t('memoryScreen')} lang={language.value}>
      <h1>{t('memoryScreen')}</h1>
      {!canLearn.value ? (
        // Nobody knows what a server keeps that does not answer; the page says that it does not.
        isOnline.value && (
          <>
            <p>{t('memoryNone')}</p>
            <pre tabIndex={0}>chimere serve --engram ~/chimere-notes</pre>
          </>
        )
      ) : (
        <>
          <p class="hint">{t('memoryHint')}</p>
          <OwnerField />
          <TeachForm />
          <h2 id="taught" tabIndex={-1}>
            {t('memoryTaught')}
          </h2>
          <Room />
          {list.length === 0 && <p class="none">{t('memoryEmpty')}</p>}
          <ul>
            {list.map((note) => (
              <NoteEntry key={note.id} note={note} />
            ))}
          </ul>
          {list.length > 0 && (
            <div class="buttons">
              <button
                type="button"
                class="danger"
                onClick={() =>
                  confirmThen(t('memoryForgetAllSure', { n: list.length }), t('forgetAll'), () => void forgetAll())
                }
              >
                {t('forgetAll')}
              </button>
            </div>
          )}
        </>
      )}
      <LearningSection />
    </main>
  )
}
