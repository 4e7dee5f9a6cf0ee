// conversation_list.tsx  The conversations by date, those that were pinned first.
import { useState } from 'preact/hooks'
import { t } from '../i18n'
import { openInChat } from '../store/address'
import { conversations, openId, remove, update, type Conversation } from '../store/conversations'
import { groupsOf } from '../store/dates'
import { isBeingWritten, running } from '../store/generation'
import { Pin, Trash } from '../ui/icons'
import { offer } from '../ui/notice'
import { wantedPlace } from './place'
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
          wantedPlace.value = null
          openInChat(conversation.id)
          uncoverScreen()
          onOpen()
        }}
        onDblClick={() => setIsRenaming(true)}
        onKeyDown={(event) => {
          if (event.key === 'F2') setIsRenaming(true)
        }}
      >
        {isBeingWritten(conversation.id) && <span class="busy" aria-label={t('running')} role="img" />}
        {title}
      </button>
      <span class="tools">
        <button
          type="button"
          class="quiet pin"
          aria-label={t('pin', { title })}
          aria-pressed={!!conversation.pinned}
          onClick={() => update(conversation.id, (c) => ({ updated: c.updated, pinned: !c.pinned }))}
        >
          <Pin />
        </button>
        <button
          type="button"
          class="quiet delete"
          aria-label={t('deleteConversation', { title })}
          onClick={(event) => deleteConversation(conversation.id, title, event.currentTarget)}
        >
          <Trash />
        </button>
      </span>
    </li>
  )
}

export const ConversationList = ({ onOpen }: { onOpen: () => void }) => (
  <div class="list">
    {conversations.value.length === 0 && <p class="none">{t('noConversations')}</p>}
    {groupsOf(conversations.value).map(([heading, list]) => (
      <section key={heading} aria-label={heading}>
        <h2>{heading}</h2>
        <ul>
          {list.map((conversation) => (
            <Entry key={conversation.id} conversation={conversation} onOpen={onOpen} />
          ))}
        </ul>
      </section>
    ))}
  </div>
)
