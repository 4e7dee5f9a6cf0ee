// uploads.ts  Files on their way into collections, one after another; they go on when the screen is left.
import { signal } from '@preact/signals'
import { ApiError } from '../api/client'
import type { AddedDocument } from '../api/types'
import { upload } from '../api/upload'
import { newId } from '../id'
import { t } from '../i18n'
import { bytes, count } from '../ui/format'
import { announce } from '../ui/announcer'
import { collections, lookAgain } from './collections'

// indexing: all of it is there; the server reads it, cuts it and embeds it.
export type UploadState = 'waits' | 'sending' | 'indexing' | 'done' | 'failed' | 'cancelled'

export interface Upload {
  id: string
  collection: string
  name: string
  state: UploadState
  sent: number // 0 to 1
  words: string // what came of it, where it is done or has failed
}

export const uploads = signal<Upload[]>([])

interface Waiting {
  id: string
  collection: string
  file: File
  ending: AbortController
}
const queue: Waiting[] = []
let current: Waiting | null = null

const change = (id: string, part: Partial<Upload>) =>
  (uploads.value = uploads.value.map((one) => (one.id === id ? { ...one, ...part } : one)))

const ENDED: UploadState[] = ['done', 'failed', 'cancelled']
export const isEnded = ({ state }: Upload) => ENDED.includes(state)

const RESULTS = { added: 'filesAdded', replaced: 'filesReplaced', unchanged: 'filesUnchanged' } as const
const resultWords = ({ status, chunks }: AddedDocument) => t(RESULTS[status] ?? 'filesAdded', { n: count(chunks) })

// Why it is not worth sending; '' where it is.
async function refusal(file: File): Promise<string> {
  const limit = collections.value?.limits.document_bytes
  if (limit && file.size > limit) return t('filesTooLarge', { size: bytes(file.size), limit: bytes(limit) })
  // A folder looks like a file until it is read.
  const canBeRead = await file.slice(0, 1).arrayBuffer().then(() => true, () => false)
  return canBeRead ? '' : t('filesUnreadable')
}

async function work({ id, collection, file, ending }: Waiting) {
  const words = await refusal(file)
  if (words) {
    change(id, { state: 'failed', words })
    return
  }
  change(id, { state: 'sending' })
  const onSent = (sent: number) => change(id, { sent, state: sent < 1 ? 'sending' : 'indexing' })
  try {
    const added = await upload(collection, file, { onSent, signal: ending.signal })
    change(id, { state: 'done', words: resultWords(added) })
  } catch (error) {
    if (ending.signal.aborted) change(id, { state: 'cancelled', words: '' })
    else change(id, { state: 'failed', words: error instanceof ApiError ? error.message : t('connectionLostShort') })
  }
  await lookAgain(collection)
}

async function workOff() {
  const worked = new Set<string>()
  for (current = queue.shift() ?? null; current; current = queue.shift() ?? null) {
    worked.add(current.id)
    await work(current)
  }
  const n = (wanted: UploadState) => count(uploads.value.filter(({ id, state }) => worked.has(id) && state === wanted).length)
  announce(t('filesAllDone', { added: n('done'), failed: n('failed') }))
}

export function addFiles(collection: string, files: Iterable<File>) {
  const added = [...files].map((file) => ({ id: newId(), collection, file, ending: new AbortController() }))
  if (!added.length) return
  const shown = added.map(({ id, file }) => ({ id, collection, name: file.name, state: 'waits' as const, sent: 0, words: '' }))
  uploads.value = [...uploads.value, ...shown]
  queue.push(...added)
  if (!current) void workOff()
}

export function cancelUpload(id: string) {
  if (current?.id === id) return current.ending.abort()
  const at = queue.findIndex((one) => one.id === id)
  if (at < 0) return
  queue.splice(at, 1)
  change(id, { state: 'cancelled', words: '' })
}

export const clearEnded = (collection: string) =>
  (uploads.value = uploads.value.filter((one) => one.collection !== collection || !isEnded(one)))
