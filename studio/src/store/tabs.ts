// tabs.ts  The pages of this browser in step: what changes in one is told to the others, and an answer is written by one of
// them alone.
//
// The one that writes says so again and again, with the text it has. The others show it and write nothing themselves; when
// they hear nothing for a while that page is gone, and the answer with it.
import { signal } from '@preact/signals'
import { newId } from '../id'
import type { Conversation, Message } from './conversations'
import type { Draft } from './drafts'

export type News =
  | { kind: 'hello' } // a new page: whoever writes should say so
  | { kind: 'put'; conversation: Conversation }
  | { kind: 'gone'; id: string }
  | { kind: 'cleared' }
  | { kind: 'draft'; key: string; draft: Draft }
  | { kind: 'writing'; id: string; by: string; messageId: string; text: Partial<Message> }
  | { kind: 'written'; id: string }
  | { kind: 'stop'; id: string } // asks whoever writes there

const channel = new BroadcastChannel('chimere')

export const tell = (news: News) => channel.postMessage(news)

export const onNews = (hear: (news: News) => void) =>
  channel.addEventListener('message', (event) => hear(event.data as News))

export const thisPage = newId()

// Conversations whose answer another page is writing.
export const elsewhere = signal<ReadonlySet<string>>(new Set())

const SILENCE_MS = 6000
const timers = new Map<string, ReturnType<typeof setTimeout>>()

export function markElsewhere(id: string, isWriting: boolean, onSilence: () => void = () => undefined) {
  clearTimeout(timers.get(id))
  timers.delete(id)
  if (elsewhere.value.has(id) !== isWriting) {
    const next = new Set(elsewhere.value)
    if (isWriting) next.add(id)
    else next.delete(id)
    elsewhere.value = next
  }
  if (!isWriting) return
  const giveUp = () => {
    markElsewhere(id, false)
    onSilence()
  }
  timers.set(id, setTimeout(giveUp, SILENCE_MS))
}
