// sidebar.tsx  Beside the screen: a new conversation, search, the list, import.
import { useRef } from 'preact/hooks'
import { t } from '../i18n'
import { openInChat } from '../store/address'
import { conversations, openId, put, start } from '../store/conversations'
import { addLibrary } from '../store/library'
import { readExport } from '../store/transfer'
import { Plus } from '../ui/icons'
import { notify } from '../ui/notice'
import { ConversationList } from './conversation_list'
import { leaveSearch, query, SearchBox, SearchResults } from './search'
import { uncoverScreen } from './settings_panel'

async function importFiles(files: Iterable<File>) {
  let found = 0
  let others = 0
  for (const file of files) {
    const { conversations: list, ...library } = readExport(await file.text())
    const made = library.presets.length + library.prompts.length
    if (!list.length && !made) notify(t('importFailed', { name: file.name, reason: t('importWrong') }), 'error')
    list.forEach(put)
    if (made) addLibrary(library)
    found += list.length
    others += made
    if (list[0]) openInChat(list[0].id)
  }
  if (found) notify(found === 1 ? t('importedOne') : t('imported', { n: found }))
  if (others) notify(t('importedLibrary', { n: others }))
}

export function newConversation() {
  // An empty one that is open already is as good as new.
  const open = conversations.value.find((c) => c.id === openId.value)
  openInChat(!open || open.messages.length ? start().id : open.id)
  leaveSearch()
  uncoverScreen()
}

export function Sidebar({ isShown, onClose }: { isShown: boolean; onClose: () => void }) {
  const picker = useRef<HTMLInputElement>(null)
  return (
    <nav class={isShown ? 'sidebar shown' : 'sidebar'} aria-label={t('menu')} id="sidebar">
      <button
        type="button"
        class="new"
        onClick={() => {
          newConversation()
          onClose()
        }}
      >
        <Plus /> {t('newConversation')}
      </button>
      <search>
        <SearchBox onOpen={onClose} />
      </search>
      {query.value.trim() ? <SearchResults onOpen={onClose} /> : <ConversationList onOpen={onClose} />}
      <button type="button" class="quiet" onClick={() => picker.current?.click()}>
        {t('import')}
      </button>
      <input
        ref={picker}
        type="file"
        accept=".json,.md,application/json,text/markdown"
        multiple
        hidden
        data-purpose="import"
        onChange={(event) => {
          void importFiles(event.currentTarget.files ?? [])
          event.currentTarget.value = ''
        }}
      />
    </nav>
  )
}
