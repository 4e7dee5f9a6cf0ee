// collection.tsx  One collection: adding files, searching in them, and the list of them.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { CollectionDocument } from '../api/types'
import { t } from '../i18n'
import { collections, deleteDocument, openShelf, shelf } from '../store/collections'
import { addFiles } from '../store/uploads'
import { confirmThen } from '../ui/dialog'
import { useDrop } from '../ui/drop'
import { bytes, count, day } from '../ui/format'
import { Back, Plus } from '../ui/icons'
import { filesAddress } from '../ui/route'
import { DeleteCollection } from './delete_collection'
import { PassageSearch } from './passage_search'
import { UploadList } from './upload_list'

function AddFiles({ collection }: { collection: string }) {
  const picker = useRef<HTMLInputElement>(null)
  const add = (files: Iterable<File>) => addFiles(collection, files)
  const isOver = useDrop(add)
  const limit = collections.value?.limits.document_bytes
  return (
    <div class={isOver ? 'drop over' : 'drop'}>
      <p class="ways">
        <button type="button" class="main" aria-describedby="files-limits" onClick={() => picker.current?.click()}>
          <Plus /> {t('filesAdd')}
        </button>
        {t('filesDrop')}
      </p>
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        data-purpose="documents"
        onChange={(event) => {
          add(event.currentTarget.files ?? [])
          event.currentTarget.value = ''
        }}
      />
      <p id="files-limits" class="hint">
        {t('filesKinds')} {limit ? t('filesLimit', { limit: bytes(limit) }) : ''}
      </p>
    </div>
  )
}

interface EntryProps {
  collection: string
  document: CollectionDocument
  isNamed: boolean // by the address
}

function DocumentEntry({ collection, document: { name, title, kind, bytes: size, chunks, created_at }, isNamed }: EntryProps) {
  const entry = useRef<HTMLLIElement>(null)
  useEffect(() => {
    if (!isNamed) return
    entry.current?.scrollIntoView({ block: 'center' })
    entry.current?.focus({ preventScroll: true })
  }, [isNamed])
  const facts = [kind, bytes(size), chunks === 1 ? t('passagesOne') : t('passagesMany', { n: count(chunks) }), day(created_at)]
  const remove = () => {
    document.getElementById('documents')?.focus() // the button goes away
    void deleteDocument(collection, name)
  }
  return (
    <li class={isNamed ? 'entry named' : 'entry'} ref={entry} tabIndex={-1} aria-current={isNamed ? 'true' : undefined}>
      <div class="text">
        <p class="name">{name}</p>
        {title && title !== name && <p class="title">{title}</p>}
        <p class="hint">{facts.join(' · ')}</p>
      </div>
      <button
        type="button"
        class="quiet small"
        aria-label={t('deleteConversation', { title: name })}
        onClick={() => confirmThen(t('fileDeleteSure', { name }), t('delete'), remove)}
      >
        {t('delete')}
      </button>
    </li>
  )
}

// A long list is shown in parts: a browser is slow with a hundred thousand entries, and so is whoever reads them.
const PART = 200

function Documents({ collection, named }: { collection: string; named: string }) {
  const [shown, setShown] = useState(PART)
  const list = shelf.value.collection === collection ? shelf.value.list : null
  if (!list) return null
  const at = list.findIndex(({ name }) => name === named)
  const n = Math.max(shown, at + 1)
  return (
    <>
      {named && at < 0 && <p class="problem">{t('fileMissing', { name: named })}</p>}
      {list.length === 0 && <p class="none">{t('documentsNone')}</p>}
      <ul>
        {list.slice(0, n).map((one) => (
          <DocumentEntry key={one.name} collection={collection} document={one} isNamed={one.name === named} />
        ))}
      </ul>
      {list.length > n && (
        <div class="buttons">
          <button type="button" onClick={() => setShown(n + PART)}>
            {t('filesMore', { n: count(list.length - n) })}
          </button>
        </div>
      )}
    </>
  )
}

export function CollectionView({ name, document }: { name: string; document: string }) {
  const title = useRef<HTMLHeadingElement>(null)
  useEffect(() => void openShelf(name), [])
  useLayoutEffect(() => {
    if (!document) title.current?.focus({ preventScroll: true })
  }, [])
  const known = collections.value?.data.find((one) => one.name === name)
  return (
    <>
      <div class="top-line">
        <a href={filesAddress()}>
          <Back /> {t('collectionsAll')}
        </a>
        <h1 ref={title} tabIndex={-1}>
          {name}
        </h1>
      </div>
      {shelf.value.collection === name && shelf.value.isMissing ? (
        <p class="problem">{t('collectionMissing', { name })}</p>
      ) : (
        <>
          <AddFiles collection={name} />
          <UploadList collection={name} />
          <PassageSearch collection={name} />
          <h2 id="documents" tabIndex={-1}>
            {t('documents')}
          </h2>
          <Documents collection={name} named={document} />
          {known && (
            <div class="buttons">
              <DeleteCollection collection={known} hasWord />
            </div>
          )}
        </>
      )}
    </>
  )
}
