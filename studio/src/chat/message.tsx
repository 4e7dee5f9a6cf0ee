// message.tsx  One message: what was said, thought and called, and what can be done with it.
import { useCallback, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { t } from '../i18n'
import { copyText } from '../markdown/code_view'
import { Markdown } from '../markdown/markdown'
import { find, type Message } from '../store/conversations'
import { canContinue, edit, generate, openCalls, regenerate, type Live } from '../store/generation'
import { learning, tellSign } from '../store/learning'
import { canLearn, learn } from '../store/memory'
import { citationsOf, numbersOf } from '../store/run'
import { useGrowth } from '../ui/growth'
import { memo } from '../ui/memo'
import { Approvals } from './approval'
import { Citations, type Asked } from './citations'
import { FullContext } from './full_context'
import { HeatStrip } from './heat_strip'
import { Correction, Rating } from './rating'
import { RunTrace } from './run_trace'
import { Sources } from './sources'
import { SpeedStrip } from './speed_strip'
import { Thinking } from './thinking'
import { ToolCallView } from './tool_call'
import { VariantSwitch } from './variant_switch'
import { Waiting } from './waiting'

interface Props {
  conversationId: string
  message: Message
  place: number // among the variants of this message
  count: number // of these
  live: Live | null // while it is being written
  isBusy: boolean // some answer of this conversation is being written
}

function Files({ message }: { message: Message }) {
  if (!message.files?.length) return null
  return (
    <ul class="files">
      {message.files.map((file) => (
        <li key={file.name}>{file.name}</li>
      ))}
    </ul>
  )
}

// The answer that a question got.
function answerTo(conversationId: string, question: Message): Message | undefined {
  const messages = find(conversationId)?.messages ?? []
  return messages[messages.findIndex((m) => m.id === question.id) + 1]
}

function EditForm({ conversationId, message, onClose }: Pick<Props, 'conversationId' | 'message'> & { onClose: () => void }) {
  const [text, setText] = useState(message.content)
  const area = useRef<HTMLTextAreaElement>(null)
  useGrowth(area, text)
  useLayoutEffect(() => area.current?.focus(), [])
  return (
    <form
      class="edit"
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        event.preventDefault()
        onClose()
      }}
      onSubmit={(event) => {
        event.preventDefault()
        onClose()
        tellSign(answerTo(conversationId, message), 'edited')
        edit(conversationId, message.id, text)
      }}
    >
      <textarea
        aria-label={t('edit')}
        rows={2}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        ref={area}
      />
      <div class="buttons">
        <button type="button" class="quiet" onClick={onClose}>
          {t('cancel')}
        </button>
        <button type="submit" class="main" disabled={!text.trim()}>
          {t('save')}
        </button>
      </div>
    </form>
  )
}

function UserMessage({ conversationId, message, place, count, isBusy }: Props) {
  const [isEditing, setIsEditing] = useState(false)
  const editButton = useRef<HTMLButtonElement>(null)
  const stopEditing = () => {
    setIsEditing(false)
    // The button is back in the next frame, and so is the place of whoever works with the keyboard.
    requestAnimationFrame(() => editButton.current?.focus())
  }
  return (
    <article class="message user" data-message={message.id} tabIndex={-1} aria-label={t('messageYours')}>
      <Files message={message} />
      {isEditing ? (
        <EditForm conversationId={conversationId} message={message} onClose={stopEditing} />
      ) : (
        <>
          {message.content && <div class="said">{message.content}</div>}
          <div class="actions">
            <VariantSwitch {...{ conversationId, place, count, isBusy }} messageId={message.id} />
            <button type="button" class="quiet small" onClick={() => void copyText(message.content)}>
              {t('copy')}
            </button>
            <button
              type="button"
              class="quiet small"
              ref={editButton}
              disabled={isBusy}
              onClick={() => setIsEditing(true)}
            >
              {t('edit')}
            </button>
          </div>
        </>
      )}
    </article>
  )
}

const isUnwritten = ({ content, reasoning, toolCalls }: Message) => !content && !reasoning && !toolCalls?.length

function Ending({ conversationId, message, isBusy }: Pick<Props, 'conversationId' | 'message' | 'isBusy'>) {
  if (message.outcome === 'full' || message.outcome === 'overlong') {
    return <FullContext conversationId={conversationId} message={message} isBusy={isBusy} />
  }
  const text =
    message.outcome === 'stopped'
      ? t('endedStopped')
      : message.outcome === 'length'
        ? t('endedByLength')
        : message.outcome === 'loop'
          ? t('endedByLoop')
        : message.outcome === 'lost'
          ? t(isUnwritten(message) ? 'endedUnreached' : 'endedLost')
          : (message.error ?? '')
  const isProblem = message.outcome === 'lost' || message.outcome === 'failed'
  const goesOn = find(conversationId)?.messages.at(-1)?.id === message.id && canContinue(message)
  return (
    <div class={isProblem ? 'ending problem' : 'ending'}>
      <span>{text}</span>
      {goesOn && (
        <button type="button" class="small" disabled={isBusy} onClick={() => void generate(conversationId)}>
          {t('continue')}
        </button>
      )}
      {isProblem && (
        <button type="button" class="small" disabled={isBusy} onClick={() => regenerate(conversationId, message.id)}>
          {t('tryAgain')}
        </button>
      )}
    </div>
  )
}

function AssistantMessage({ conversationId, message, place, count, live, isBusy }: Props) {
  const [isCorrecting, setIsCorrecting] = useState(false)
  const shown = live ? live.text.value : message
  const reasoning = shown.reasoning ?? ''
  const calls = shown.toolCalls ?? []
  const isGrowing = live !== null || (isBusy && !message.outcome) // here, or in another page
  const isEmpty = !shown.content && !reasoning && !calls.length
  const read = live?.text.value.read ?? null
  const { run } = shown
  const isWaiting = isGrowing && isEmpty && (!run || (read !== null && read < 1)) // steps tell by themselves
  const cited = citationsOf(run, shown.citations)
  // What is cited was read, too, and is not listed twice.
  const others = message.sources?.filter(({ source }) => !cited.some(({ title }) => title === source)) ?? []
  const [asked, setAsked] = useState<Asked | null>(null)
  const ask = useCallback((n: number) => setAsked({ n }), [])
  const open = isGrowing ? [] : openCalls(find(conversationId)?.messages ?? [])
  return (
    <article
      class="message assistant"
      data-message={message.id}
      tabIndex={-1}
      aria-label={t('messageModel')}
      aria-busy={isGrowing}
    >
      {reasoning && (
        <Thinking
          text={reasoning}
          tokens={shown.speed?.thinkingTokens ?? 0}
          isOpenEnded={live !== null && live.text.value.isThinking}
          onStop={live?.stopThinking ?? null}
        />
      )}
      {isWaiting && <Waiting read={read} />}
      {shown.content && (
        <Markdown text={shown.content} isGrowing={isGrowing} cited={numbersOf(cited).join()} onCite={ask} />
      )}
      {shown.heat && shown.heat.length > 0 && (
        <HeatStrip {...{ conversationId, message, isBusy }} heat={shown.heat} />
      )}
      {cited.length > 0 && <Citations list={cited} asked={asked} />}
      {!isGrowing && others.length > 0 && <Sources sources={others} />}
      {run && <RunTrace run={run} isGrowing={isGrowing} />}
      {run && isGrowing && <Approvals run={run} />}
      {calls.map((call, i) => (
        <ToolCallView
          key={call.id || i}
          conversationId={conversationId}
          call={call}
          isOpen={open.some((o) => o.id === call.id)}
        />
      ))}
      {!live && message.outcome && message.outcome !== 'done' && (
        <Ending conversationId={conversationId} message={message} isBusy={isBusy} />
      )}
      <footer>
        {shown.speed && shown.speed.tokens > 0 && <SpeedStrip speed={shown.speed} />}
        {!isGrowing && (
          <div class="actions">
            <VariantSwitch {...{ conversationId, place, count, isBusy }} messageId={message.id} />
            {message.content && (
              <Rating conversationId={conversationId} message={message} onBad={setIsCorrecting} />
            )}
            {message.content && (
              <button
                type="button"
                class="quiet small"
                onClick={() => {
                  tellSign(message, 'copied')
                  void copyText(message.content)
                }}
              >
                {t('copy')}
              </button>
            )}
            {message.content && canLearn.value && (
              <button
                type="button"
                class="quiet small"
                title={t('learnHint')}
                onClick={() => void learn(message.content, find(conversationId)?.title || t('unnamed'))}
              >
                {t('learn')}
              </button>
            )}
            {/* Where nothing was written, "Try again" says the same. */}
            {!(isUnwritten(message) && (message.outcome === 'lost' || message.outcome === 'failed')) && (
              <button
                type="button"
                class="quiet small"
                disabled={isBusy}
                onClick={() => {
                  tellSign(message, 'regenerated')
                  regenerate(conversationId, message.id)
                }}
              >
                {t('regenerate')}
              </button>
            )}
          </div>
        )}
      </footer>
      {isCorrecting && message.thumb === 'down' && learning.value?.keeps && (
        <Correction message={message} onClose={() => setIsCorrecting(false)} />
      )}
    </article>
  )
}

function ToolMessage({ message }: Props) {
  return (
    <article class="message tool" data-message={message.id} tabIndex={-1} aria-label={t('messageTool')}>
      <details>
        <summary>{t('messageTool')}</summary>
        <pre tabIndex={0}>{message.content}</pre>
      </details>
    </article>
  )
}

export const MessageView = memo((props: Props) => {
  switch (props.message.role) {
    case 'user':
      return <UserMessage {...props} />
    case 'assistant':
      return <AssistantMessage {...props} />
    case 'tool':
      return <ToolMessage {...props} />
  }
})
