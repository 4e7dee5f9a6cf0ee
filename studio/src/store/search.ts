// search.ts  Words in titles and messages, whatever their case and accents.
import type { Conversation, Message } from './conversations'

export interface Hit {
  conversation: Conversation
  messageId: string | null // null: the title alone
  excerpt: string
}

const PER_CONVERSATION = 3
const MOST = 50
const BEFORE = 30 // characters of an excerpt before the first word that was found
const LENGTH = 110

// As long as the text, so that a place in one is the place in the other.
function fold(text: string): string {
  const plain = (c: string) => {
    const letter = c.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase()
    return letter.length === 1 ? letter : c
  }
  return text.replace(/[^\0-\x7f]/g, plain).toLowerCase()
}

export const wordsOf = (query: string) => fold(query).split(/\s+/).filter(Boolean)

const folded = new WeakMap<Message, string>()
function foldedContent(message: Message): string {
  const known = folded.get(message) ?? fold(message.content)
  folded.set(message, known)
  return known
}

const hasAll = (text: string, words: string[]) => words.every((word) => text.includes(word))

function excerptOf(message: Message, words: string[]): string {
  const text = foldedContent(message)
  const first = Math.min(...words.map((word) => text.indexOf(word)))
  const from = first <= BEFORE ? 0 : message.content.indexOf(' ', first - BEFORE) + 1 || first
  const start = Math.min(from, first)
  const end = start + LENGTH
  const cut = message.content.slice(start, end).replace(/\s+/g, ' ')
  return `${start > 0 ? '…' : ''}${cut}${end < message.content.length ? '…' : ''}`
}

export function search(list: Conversation[], words: string[]): Hit[] {
  if (!words.length) return []
  const hits: Hit[] = []
  for (const conversation of list) {
    const all = [conversation.messages, ...(conversation.branches ?? []).map((branch) => branch.messages)].flat()
    const found = all.filter((message) => hasAll(foldedContent(message), words)).slice(0, PER_CONVERSATION)
    for (const message of found) hits.push({ conversation, messageId: message.id, excerpt: excerptOf(message, words) })
    if (!found.length && hasAll(fold(conversation.title), words)) hits.push({ conversation, messageId: null, excerpt: '' })
    if (hits.length >= MOST) break
  }
  return hits
}

// Where the words are in a text, in order and without overlaps.
export function placesOf(text: string, words: string[]): [number, number][] {
  const inside = fold(text)
  const found = words.flatMap((word) => {
    const places: [number, number][] = []
    for (let at = inside.indexOf(word); at >= 0; at = inside.indexOf(word, at + word.length)) {
      places.push([at, at + word.length])
    }
    return places
  })
  const ordered = found.sort((a, b) => a[0] - b[0] || b[1] - a[1])
  return ordered.filter(([from], i) => ordered.slice(0, i).every(([, until]) => until <= from))
}
