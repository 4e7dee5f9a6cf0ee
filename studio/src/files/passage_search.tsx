// passage_search.tsx  What a collection has to say to a question: the passages that are found, as an answer would get them.
import { useState } from 'preact/hooks'
import type { Passage } from '../api/types'
import { t } from '../i18n'
import { findPassages } from '../store/collections'
import { announce } from '../ui/announcer'
import { count } from '../ui/format'
import { filesAddress } from '../ui/route'

const SCORE_DIGITS = 4

function ranks({ words, vectors }: Passage['ranks']): string[] {
  return [...(words ? [t('rankWords', { n: words })] : []), ...(vectors ? [t('rankVectors', { n: vectors })] : [])]
}

function PassageEntry({ collection, passage }: { collection: string; passage: Passage }) {
  const { document, heading, place, score, text } = passage
  const facts = [place, t('score', { n: count(score, SCORE_DIGITS) }), ...ranks(passage.ranks)].filter((fact) => fact)
  return (
    <li class="entry passage">
      <p>
        <a href={filesAddress(collection, document)}>{document}</a>
        {heading && <span class="hint"> {heading}</span>}
      </p>
      <p class="hint">{facts.join(' · ')}</p>
      <blockquote>{text}</blockquote>
    </li>
  )
}

export function PassageSearch({ collection }: { collection: string }) {
  const [query, setQuery] = useState('')
  const [found, setFound] = useState<Passage[] | null>(null)
  const [isBusy, setIsBusy] = useState(false)
  const look = async () => {
    setIsBusy(true)
    const passages = await findPassages(collection, query.trim())
    setIsBusy(false)
    setFound(passages)
    if (passages) announce(passages.length ? t('passagesFound', { n: count(passages.length) }) : t('passagesNone'))
  }
  return (
    <section aria-labelledby="passages">
      <h2 id="passages">{t('passagesSearch')}</h2>
      <search>
        <form
          class="line"
          onSubmit={(event) => {
            event.preventDefault()
            if (query.trim()) void look()
          }}
        >
          <label>
            {t('passagesQuestion')}
            <input
              type="search"
              value={query}
              onInput={(event) => {
                setQuery(event.currentTarget.value)
                if (!event.currentTarget.value) setFound(null)
              }}
            />
          </label>
          <button type="submit" disabled={!query.trim() || isBusy}>
            {t('passagesFind')}
          </button>
        </form>
      </search>
      {found?.length === 0 && <p class="none">{t('passagesNone')}</p>}
      {found && found.length > 0 && (
        <ol>
          {found.map((passage, i) => (
            <PassageEntry key={i} collection={collection} passage={passage} />
          ))}
        </ol>
      )}
    </section>
  )
}
