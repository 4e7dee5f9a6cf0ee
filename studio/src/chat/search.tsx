// search.tsx  Finding a conversation by what was said in it.
import { useMemo } from 'preact/hooks'
import { signal } from '@preact/signals'
import { t } from '../i18n'
import { conversations } from '../store/conversations'
import { placesOf, search, wordsOf, type Hit } from '../store/search'
import { clearMarks, openAt } from './place'

export const query = signal('')

export function leaveSearch() {
  query.value = ''
  clearMarks()
}

function Marked({ text, words }: { text: string; words: string[] }) {
  let at = 0
  const parts = placesOf(text, words).flatMap(([from, until]) => {
    const before = text.slice(at, from)
    at = until
    return [before, <mark key={from}>{text.slice(from, until)}</mark>]
  })
  return (
    <>
      {parts}
      {text.slice(at)}
    </>
  )
}

// Up and down go through the box and what was found, as in a menu.
function onKey(event: KeyboardEvent) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  const root = (event.currentTarget as HTMLElement).closest('.sidebar')
  if (!step || !root) return
  const stops = [...root.querySelectorAll<HTMLElement>('input[type=search], .hit')]
  stops[stops.indexOf(document.activeElement as HTMLElement) + step]?.focus()
  event.preventDefault()
}

export function SearchBox({ onOpen }: { onOpen: () => void }) {
  return (
    <input
      type="search"
      aria-label={t('search')}
      placeholder={t('search')}
      value={query.value}
      onInput={(event) => (query.value = event.currentTarget.value)}
      onKeyDown={(event) => {
        onKey(event)
        const words = wordsOf(query.value)
        if (event.key === 'Escape' && query.value) {
          event.preventDefault() // no answer is stopped by it
          leaveSearch()
        }
        const first = event.key === 'Enter' ? search(conversations.value, words)[0] : undefined
        if (!first) return
        openAt(first.conversation.id, first.messageId, words)
        onOpen()
      }}
    />
  )
}

function HitEntry({ hit: { conversation, messageId, excerpt }, words, onOpen }: {
  hit: Hit
  words: string[]
  onOpen: () => void
}) {
  return (
    <li>
      <button
        type="button"
        class="entry hit"
        onKeyDown={onKey}
        onClick={() => {
          openAt(conversation.id, messageId, words)
          onOpen()
        }}
      >
        <span class="title">
          <Marked text={conversation.title || t('unnamed')} words={words} />
        </span>
        {excerpt && (
          <span class="excerpt">
            <Marked text={excerpt} words={words} />
          </span>
        )}
      </button>
    </li>
  )
}

export function SearchResults({ onOpen }: { onOpen: () => void }) {
  const words = wordsOf(query.value)
  const list = conversations.value
  const hits = useMemo(() => search(list, words), [list, words.join(' ')])
  return (
    <div class="list">
      <p class="none" role="status">
        {hits.length ? t('found', { n: hits.length }) : t('foundNone')}
      </p>
      <ul>
        {hits.map((hit) => (
          <HitEntry key={`${hit.conversation.id} ${hit.messageId}`} {...{ hit, words, onOpen }} />
        ))}
      </ul>
    </div>
  )
}
