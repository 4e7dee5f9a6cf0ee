// citations.tsx  What an answer rests on, numbered as the answer counts: links to pages and to the files of collections, each
// with the passage that was read. A number in the answer opens its passage.
import { useEffect, useRef, useState } from 'preact/hooks'
import { t } from '../i18n'
import { numbersOf, type Citation } from '../store/run'
import { filesAddress } from '../ui/route'

// A number of the answer was pressed; a new object each time.
export interface Asked {
  n: number
}

const isLink = (url: string | undefined): url is string => /^https?:\/\//i.test(url ?? '')

function Title({ title, url, collection, document }: Citation) {
  if (collection && document) {
    return (
      <>
        <a href={filesAddress(collection, document)}>{title}</a>{' '}
        <span class="hint">
          {collection} / {document}
        </span>
      </>
    )
  }
  if (!isLink(url)) return <cite>{title}</cite>
  return (
    <a href={url} target="_blank" rel="noopener noreferrer nofollow">
      {title}
    </a>
  )
}

// About what three lines hold.
const BRIEF = 200

function Entry({ citation, n, asked }: { citation: Citation; n: number; asked: Asked | null }) {
  const [isOpen, setIsOpen] = useState(false)
  const entry = useRef<HTMLLIElement>(null)
  const { snippet = '' } = citation
  useEffect(() => {
    if (!asked) return
    setIsOpen(true)
    entry.current?.scrollIntoView({ block: 'nearest' })
    entry.current?.focus({ preventScroll: true })
  }, [asked])
  return (
    <li value={citation.n} data-n={n} class={isOpen ? 'open' : ''} tabIndex={-1} ref={entry}>
      <Title {...citation} />
      {snippet && <p class="hint">{snippet}</p>}
      {snippet.length > BRIEF && (
        <button
          type="button"
          class="quiet small"
          aria-expanded={isOpen}
          aria-label={t(isOpen ? 'citedLessOf' : 'citedPassageOf', { n })}
          onClick={() => setIsOpen(!isOpen)}
        >
          {t(isOpen ? 'citedLess' : 'citedPassage')}
        </button>
      )}
    </li>
  )
}

export function Citations({ list, asked }: { list: Citation[]; asked: Asked | null }) {
  const numbers = numbersOf(list)
  const at = asked ? numbers.indexOf(asked.n) : -1
  return (
    <section class="cited" aria-label={t('cited')}>
      <h3>{t('cited')}</h3>
      <ol>
        {list.map((citation, i) => (
          <Entry key={i} citation={citation} n={numbers[i]!} asked={i === at ? asked : null} />
        ))}
      </ol>
    </section>
  )
}
