// screen.tsx  The chat: messages, the composer, and the artefact beside them.
import { Fragment } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { ArtefactPanel } from '../artefacts/panel'
import { t } from '../i18n'
import { variantsAt } from '../store/branches'
import { openConversation, type Conversation } from '../store/conversations'
import { running, send } from '../store/generation'
import { leftOut } from '../store/window'
import { Composer } from './composer'
import { examples, isModelInTheBox } from './examples'
import { WindowMark } from './full_context'
import { MessageView } from './message'
import { showPlace, wantedPlace } from './place'

function Empty() {
  return (
    <div class="empty">
      <h1>{t('emptyTitle')}</h1>
      {isModelInTheBox() && (
        <p>
          {t('emptyBox')} <a href="#/models">{t('guideLink')}</a>
        </p>
      )}
      <div class="examples">
        {examples().map((text) => (
          <button type="button" key={text} onClick={() => send(openConversation.value?.id ?? null, text, [])}>
            {text}
          </button>
        ))}
      </div>
      <p class="hint">{t('emptyHint')}</p>
    </div>
  )
}

// Follows the end while the reader is at the end, and leaves alone a reader who scrolled up.
function useFollow(conversation: Conversation | undefined) {
  const scroller = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  useEffect(() => {
    const box = scroller.current
    if (!box) return
    isAtEnd.current = true
    const toEnd = () => {
      if (isAtEnd.current) box.scrollTop = box.scrollHeight
    }
    const onScroll = () => (isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 60)
    box.addEventListener('scroll', onScroll, { passive: true })
    const observer = new ResizeObserver(toEnd)
    observer.observe(box.firstElementChild!)
    observer.observe(box) // which gives way to a growing composer
    toEnd()
    return () => {
      observer.disconnect()
      box.removeEventListener('scroll', onScroll)
    }
  }, [conversation?.id])
  const place = wantedPlace.value
  useEffect(() => {
    if (!place || !scroller.current) return
    isAtEnd.current = false
    showPlace(scroller.current, place)
  }, [place, conversation?.id])
  return scroller
}

export function ChatScreen() {
  const conversation = openConversation.value
  const scroller = useFollow(conversation)
  const live = conversation ? running.value.get(conversation.id) : undefined
  const messages = conversation?.messages ?? []
  const left = conversation ? leftOut(conversation) : 0
  return (
    <div class="chat">
      <main id="content" tabIndex={-1} aria-label={conversation?.title || t('chat')}>
        <div class="scroller" ref={scroller} tabIndex={0} role="log" aria-live="off" aria-label={t('chat')}>
          <div class="messages">
            {messages.length === 0 && <Empty />}
            {messages.map((message, at) => (
              <Fragment key={message.id}>
                {at > 0 && at === left && <WindowMark conversationId={conversation!.id} isBusy={live !== undefined} />}
                <MessageView
                  conversationId={conversation!.id}
                  message={message}
                  {...variantsAt(conversation!, at)}
                  live={live?.messageId === message.id ? live : null}
                  isBusy={live !== undefined}
                />
              </Fragment>
            ))}
            {left > 0 && left === messages.length && <WindowMark conversationId={conversation!.id} isBusy={false} />}
          </div>
        </div>
        <Composer conversation={conversation} live={live ?? null} />
      </main>
      <ArtefactPanel />
    </div>
  )
}
