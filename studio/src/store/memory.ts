// memory.ts  What the server has beside the model: adapters, tables and passages to choose from, and the notes that it was
// taught.
import { computed, signal } from '@preact/signals'
import * as api from '../api/client'
import type { Adapter, Memory, Note } from '../api/types'
import { t } from '../i18n'
import { notify, offer } from '../ui/notice'
import { complain } from './complain'
import { settings } from './settings'

// Null: a server without memory, or one that does not tell.
export const memory = signal<Memory | null>(null)
export const adapters = signal<Adapter[]>([])
export const notes = signal<Note[]>([])

export const canLearn = computed(() => memory.value?.limits !== undefined)
export const hasMemory = computed(
  () => canLearn.value || !!memory.value?.tables.length || !!memory.value?.passages.length,
)

const user = () => settings.value.user

// What a server that does not answer was last known to have, it is believed to have still.
export async function loadMemory() {
  const isGone = (error: unknown) => error instanceof api.ConnectionLost
  memory.value = await api.memory(user()).catch((error) => (isGone(error) ? memory.value : null))
  adapters.value = await api.adapters().catch((error) => (isGone(error) ? adapters.value : []))
}

export async function loadNotes() {
  try {
    notes.value = canLearn.value ? await api.notes(user()) : []
    memory.value = await api.memory(user())
  } catch (error) {
    if (error instanceof api.ApiError) complain(error) // that the server is gone is said above
  }
}

type Lesson = Pick<Note, 'text' | 'source'> & Partial<Pick<Note, 'score'>>

// The id of the note, or null and a word about why not.
async function accept({ text, source, score }: Lesson): Promise<number | null> {
  try {
    const { note, learned } = await api.learn({ user: user(), text, source, ...(score === undefined ? {} : { score }) })
    if (!learned) notify(t('memoryNotLearned'), 'error')
    return note ?? null
  } catch (error) {
    complain(error)
    return null
  }
}

async function drop(what: { note: number } | { all: true }): Promise<boolean> {
  try {
    await api.forget({ user: user(), ...what })
    return true
  } catch (error) {
    complain(error)
    return false
  }
}

// Where it came from: the name of a conversation, as far as the server takes it.
export async function learn(text: string, source: string): Promise<boolean> {
  const note = await accept({ text, source: source.slice(0, 200) })
  if (note === null) return false
  offer(t('memoryLearned'), t('undoLearn'), () => void drop({ note }).then(loadNotes))
  await loadNotes()
  return true
}

// The better text is kept before the old one goes.
export async function correct(old: Note, text: string): Promise<boolean> {
  if ((await accept({ text, source: old.source, score: old.score })) === null) return false
  await drop({ note: old.id })
  await loadNotes()
  return true
}

export async function forget(note: Note) {
  if (!(await drop({ note: note.id }))) return
  offer(t('memoryForgotten'), t('undo'), () => void accept(note).then(loadNotes))
  await loadNotes()
}

export async function forgetAll() {
  await drop({ all: true })
  await loadNotes()
}
