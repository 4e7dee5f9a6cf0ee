// screen.tsx  Documents that the server keeps: the collections, or the files of the one that the address names.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Collection } from '../api/types'
import { language, t } from '../i18n'
import { collectionName, collections, loadCollections, makeCollection } from '../store/collections'
import { bytes, count } from '../ui/format'
import { filesAddress, filesPlace } from '../ui/route'
import { CollectionView } from './collection'
import { DeleteCollection } from './delete_collection'

// "2 files · 14 passages · 5 KB"
export const sizes = ({ documents, chunks, bytes: size }: Pick<Collection, 'documents' | 'chunks' | 'bytes'>) =>
  [
    documents === 1 ? t('filesOne') : t('filesMany', { n: count(documents) }),
    chunks === 1 ? t('passagesOne') : t('passagesMany', { n: count(chunks) }),
    bytes(size),
  ].join(' · ')

function MakeForm() {
  const [typed, setTyped] = useState('')
  const name = collectionName(typed)
  return (
    <form
      class="line"
      onSubmit={async (event) => {
        event.preventDefault()
        if (name && (await makeCollection(name))) location.hash = filesAddress(name)
      }}
    >
      <label>
        {t('collectionName')}
        <input
          value={typed}
          maxLength={64}
          spellcheck={false}
          autocomplete="off"
          aria-describedby="collection-name-hint"
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="main" disabled={!name}>
        {t('collectionMake')}
      </button>
      <p id="collection-name-hint" class="hint">
        {name && name !== typed ? t('collectionBecomes', { name }) : t('collectionNameHint')}
      </p>
    </form>
  )
}

const CollectionEntry = ({ collection }: { collection: Collection }) => (
  <li class="entry">
    <div class="text">
      <a href={filesAddress(collection.name)}>{collection.name}</a>
      <p class="hint">{sizes(collection)}</p>
    </div>
    <DeleteCollection collection={collection} />
  </li>
)

function Collections() {
  const known = collections.value!
  const title = useRef<HTMLHeadingElement>(null)
  // At once: a later focus would be taken from the field that somebody already writes in.
  useLayoutEffect(() => title.current?.focus({ preventScroll: true }), [])
  return (
    <>
      <h1 ref={title} tabIndex={-1}>
        {t('files')}
      </h1>
      <p class="hint">{t('filesHint')}</p>
      <MakeForm />
      <h2 id="collections" tabIndex={-1}>
        {t('collections')}
      </h2>
      {known.data.length === 0 && <p class="none">{t('collectionsNone')}</p>}
      <ul>
        {known.data.map((collection) => (
          <CollectionEntry key={collection.name} collection={collection} />
        ))}
      </ul>
      <p class="hint">{t('filesRoom', { used: sizes(known.used), limit: bytes(known.limits.bytes) })}</p>
    </>
  )
}

export function FilesScreen() {
  useEffect(() => void loadCollections(), [])
  const { collection, document } = filesPlace.value
  return (
    <main id="content" class="shelf" tabIndex={-1} aria-label={t('files')} lang={language.value} aria-busy={collections.value === undefined}>
      {collections.value === null && (
        <>
          <h1>{t('files')}</h1>
          <p>{t('filesNone')}</p>
        </>
      )}
      {collections.value &&
        (collection ? <CollectionView key={collection} name={collection} document={document} /> : <Collections />)}
    </main>
  )
}
