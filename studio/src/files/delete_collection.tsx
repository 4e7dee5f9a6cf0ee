// delete_collection.tsx  Nobody can bring a collection back: the question says so, and what stays.
import type { Collection } from '../api/types'
import { t } from '../i18n'
import { deleteCollection } from '../store/collections'
import { confirmThen } from '../ui/dialog'
import { count } from '../ui/format'
import { filesAddress } from '../ui/route'

interface Props {
  collection: Collection
  hasWord?: boolean // a button that says what it does by itself, without a list around it
}

export function DeleteCollection({ collection: { name, documents }, hasWord = false }: Props) {
  const remove = async () => {
    document.getElementById('collections')?.focus() // the button goes away
    if ((await deleteCollection(name)) && hasWord) location.hash = filesAddress()
  }
  const question = documents === 1 ? t('collectionDeleteOne', { name }) : t('collectionDeleteSure', { name, n: count(documents) })
  return (
    <button
      type="button"
      class={hasWord ? 'danger' : 'quiet small'}
      aria-label={hasWord ? undefined : t('deleteConversation', { title: name })}
      onClick={() => confirmThen(question, t('delete'), () => void remove())}
    >
      {t(hasWord ? 'collectionDelete' : 'delete')}
    </button>
  )
}
