// sidebar.tsx  The list of conversations.
import { useRef, useState } from 'preact/hooks'
import { t } from '../i18n'
import { conversations, openId, put, remove, start, update, type Conversation } from '../store/conversations'
import { running } from '../store/generation'
import { readExport } from '../store/transfer'
import { Plus, Trash } from '../ui/icons'
import { notify, offer } from '../ui/notice'
import { uncoverScreen } from './settings_panel'

function Title({ conversation, onDone }: { conversation: Conversation; onDone: () => void }) {
  return (
    <input
      class="rename"
      aria-label={t('renameConversation')}
      defaultValue={conversation.title}
      ref={(input) => input?.focus()}
      onBlur={(event) => {
        const title = event.currentTarget.value.trim()
        if (title && title !== conversation.title) update(conversation.id, () => ({ title }))
        onDone()
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== 'Escape') return
        event.preventDefault() // the title alone is meant, and no answer is stopped by it
        if (event.key === 'Escape') event.currentTarget.value = conversation.title
        event.currentTarget.blur()
      }}
    />
  )
}

// The button is gone then, so the entry after it, or else before it, has the focus; or the composer, where another
// conversation is opened by it.
function deleteConversation(id: string, title: string, button: HTMLElement) {
  const all = [...document.querySelectorAll<HTMLElement>('.sidebar .delete')]
  const at = all.indexOf(button)
  const next = all[at + 1] ?? all[at - 1] ?? document.querySelector<HTMLElement>('.sidebar .new')
  const live = running.value.get(id)
  live?.keep()
  live?.stop()
  const restore = remove(id)
  next?.focus()
  offer(t('deleted', { title }), t('undo'), restore)
}

function Entry({ conversation, onOpen }: { conversation: Conversation; onOpen: () => void }) {
  const [isRenaming, setIsRenaming] = useState(false)
  const title = conversation.title || t('unnamed')
  const isOpen = conversation.id === openId.value
  if (isRenaming) {
    return (
      <li class="open">
        <Title conversation={conversation} onDone={() => setIsRenaming(false)} />
      </li>
    )
  }
  return (
    <li class={isOpen ? 'open' : ''}>
      <button
        type="button"
        class="entry"
        aria-current={isOpen ? 'page' : undefined}
        title={title}
        onClick={() => {
          openId.value = conversation.id
          location.hash = '#/'
          uncoverScreen()
          onOpen()
        }}
        onDblClick={() => setIsRenaming(true)}
        onKeyDown={(event) => {
          if (event.key === 'F2') setIsRenaming(true)
        }}
      >
        {running.value.has(conversation.id) && <span class="busy" aria-label={t('running')} role="img" />}
        {title}
      </button>
      <button
        type="button"
        class="quiet delete"
        aria-label={t('deleteConversation', { title })}
        onClick={(event) => deleteConversation(conversation.id, title, event.currentTarget)}
      >
        <Trash />
      </button>
    </li>
  )
}

async function importFiles(files: Iterable<File>) {
  let found = 0
  for (const file of files) {
    const list = readExport(await file.text())
    if (!list.length) notify(t('importFailed', { name: file.name, reason: t('importWrong') }), 'error')
    list.forEach(put)
    found += list.length
    if (list[0]) openId.value = list[0].id
  }
  if (found) notify(t('imported', { n: found }))
}

export function newConversation() {
  // An empty one that is open already is as good as new.
  const open = conversations.value.find((c) => c.id === openId.value)
  if (!open || open.messages.length) start()
  location.hash = '#/'
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
      {conversations.value.length === 0 && <p class="none">{t('noConversations')}</p>}
      <ul>
        {conversations.value.map((conversation) => (
          <Entry key={conversation.id} conversation={conversation} onOpen={onClose} />
        ))}
      </ul>
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
