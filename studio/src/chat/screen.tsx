// screen.tsx  The chat: messages, the composer, and the artefact beside them.
import { Fragment } from 'preact'
import { ArtefactPanel } from '../artefacts/panel'
import { t } from '../i18n'
import { variantsAt } from '../store/branches'
import { openConversation } from '../store/conversations'
import { running, send } from '../store/generation'
import { elsewhere } from '../store/tabs'
import { leftOut } from '../store/window'
import { Down } from '../ui/icons'
import { Composer } from './composer'
import { ContextMeter } from './context_meter'
import { examples, isModelInTheBox } from './examples'
import { useFollow } from './follow'
import { WindowMark } from './full_context'
import { MessageView } from './message'

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

export function ChatScreen() {
  const conversation = openConversation.value
  const { scroller, isAway, isFar, jump } = useFollow(conversation)
  const live = conversation ? running.value.get(conversation.id) : undefined
  const isElsewhere = conversation !== undefined && elsewhere.value.has(conversation.id)
  const isBusy = live !== undefined || isElsewhere
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
                {at > 0 && at === left && <WindowMark conversationId={conversation!.id} isBusy={isBusy} />}
                <MessageView
                  conversationId={conversation!.id}
                  message={message}
                  {...variantsAt(conversation!, at)}
                  live={live?.messageId === message.id ? live : null}
                  isBusy={isBusy}
                />
              </Fragment>
            ))}
            {left > 0 && left === messages.length && <WindowMark conversationId={conversation!.id} isBusy={false} />}
          </div>
        </div>
        {isAway && (isFar || live) && messages.length > 0 && (
          <div class="jump">
            <button
              type="button"
              class={live ? 'main' : ''}
              onClick={() => {
                jump()
                scroller.current?.focus({ preventScroll: true }) // the button goes away
              }}
            >
              <Down /> {t(live ? 'jumpToAnswer' : 'jumpToEnd')}
            </button>
          </div>
        )}
        <Composer conversation={conversation} live={live ?? null} isElsewhere={isElsewhere} />
        <ContextMeter conversation={conversation} live={live ?? null} />
      </main>
      <ArtefactPanel />
    </div>
  )
}
