// place.ts  The message that a search leads to: brought into view, with the words marked.
import { signal } from '@preact/signals'
import { openInChat } from '../store/address'
import { showMessage } from '../store/branches'
import { find, update } from '../store/conversations'
import { isBeingWritten } from '../store/generation'
import { placesOf } from '../store/search'

export interface Place {
  messageId: string
  words: string[]
}

export const wantedPlace = signal<Place | null>(null)

export function openAt(conversationId: string, messageId: string | null, words: string[]) {
  const conversation = find(conversationId)
  if (!conversation) return
  // What is being written stays in view.
  if (messageId && !isBeingWritten(conversationId)) {
    const shown = showMessage(conversation, messageId)
    if (shown !== conversation) update(conversationId, () => shown)
  }
  wantedPlace.value = messageId ? { messageId, words } : null
  openInChat(conversationId)
}

const HIGHLIGHT = 'found'

function rangesIn(root: Element, words: string[]): Range[] {
  const ranges: Range[] = []
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    for (const [from, until] of placesOf(texts.currentNode.textContent ?? '', words)) {
      const range = document.createRange()
      range.setStart(texts.currentNode, from)
      range.setEnd(texts.currentNode, until)
      ranges.push(range)
    }
  }
  return ranges
}

// The browser's own marks need no change to what is on the page. Where it has none the message alone is found.
export function showPlace(box: HTMLElement, { messageId, words }: Place) {
  const message = box.querySelector<HTMLElement>(`[data-message="${CSS.escape(messageId)}"]`)
  if (!message) return
  const ranges = [...message.querySelectorAll('.said, .markdown, details > pre')].flatMap((part) => rangesIn(part, words))
  if ('highlights' in CSS) CSS.highlights.set(HIGHLIGHT, new Highlight(...ranges))
  const target = (ranges[0] ?? message).getBoundingClientRect()
  box.scrollTop += target.top - box.getBoundingClientRect().top - box.clientHeight / 3
  message.focus({ preventScroll: true })
}

export function clearMarks() {
  if ('highlights' in CSS) CSS.highlights.delete(HIGHLIGHT)
}
