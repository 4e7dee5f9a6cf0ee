// composer.tsx  Where a message is written: text, files, send and stop.
import { useLayoutEffect, useRef } from 'preact/hooks'
import { t } from '../i18n'
import type { AttachedFile, Conversation } from '../store/conversations'
import { changeDraft, draftOf } from '../store/drafts'
import { openCalls, send, stop, type Live } from '../store/generation'
import { useDrop } from '../ui/drop'
import { useGrowth } from '../ui/growth'
import { Clip, Cross, Send, StopSquare } from '../ui/icons'
import { readFiles } from './files'
import { OdoSources } from './odo_sources'
import { menuAria, PromptMenu, usePromptMenu } from './prompt_menu'

interface Props {
  conversation: Conversation | undefined
  live: Live | null
  isElsewhere: boolean // another page of this browser writes the answer
}

function FileChips({ files, onRemove }: { files: AttachedFile[]; onRemove: (at: number) => void }) {
  if (!files.length) return null
  return (
    <ul class="files">
      {files.map((file, i) => (
        <li key={i}>
          {file.name}
          <button type="button" class="quiet" aria-label={t('removeFile', { name: file.name })} onClick={() => onRemove(i)}>
            <Cross />
          </button>
        </li>
      ))}
    </ul>
  )
}

export function Composer({ conversation, live, isElsewhere }: Props) {
  const id = conversation?.id ?? null
  const { text, files } = draftOf(id)
  const area = useRef<HTMLTextAreaElement>(null)
  const picker = useRef<HTMLInputElement>(null)
  const addFiles = async (list: Iterable<File>) => {
    const read = await readFiles(list)
    if (read.length) changeDraft(id, (draft) => ({ files: [...draft.files, ...read] }))
  }
  const isOver = useDrop((list) => void addFiles(list))
  const menu = usePromptMenu(area, (whole) => changeDraft(id, () => ({ text: whole })))
  useGrowth(area, text)
  // At once: a later focus would be taken from what the reader has gone to by then.
  useLayoutEffect(() => area.current?.focus({ preventScroll: true }), [id])

  const isWaitingForResult = openCalls(conversation?.messages ?? []).length > 0
  const canSend = !live && !isElsewhere && !isWaitingForResult && (text.trim() !== '' || files.length > 0)
  const submit = () => {
    if (!canSend) return
    changeDraft(id, () => ({ text: '', files: [] }))
    send(id, text.trim(), files)
  }
  const onKey = (event: KeyboardEvent) => {
    if (menu.onKey(event)) return
    // An Enter that chooses a word of an input method is not meant for us.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    submit()
  }
  return (
    <form
      class={isOver ? 'composer over' : 'composer'}
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      {isElsewhere && <p class="hint">{t('writtenElsewhere')}</p>}
      {isOver && <div class="drop-hint">{t('dropHere')}</div>}
      <FileChips files={files} onRemove={(at) => changeDraft(id, () => ({ files: files.filter((_, i) => i !== at) }))} />
      <OdoSources />
      <PromptMenu {...menu} />
      <div class="line">
        <button type="button" class="quiet round" aria-label={t('attachFiles')} onClick={() => picker.current?.click()}>
          <Clip />
        </button>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            void addFiles(event.currentTarget.files ?? [])
            event.currentTarget.value = ''
          }}
        />
        <textarea
          ref={area}
          rows={1}
          aria-label={t('placeholder')}
          placeholder={t('placeholder')}
          value={text}
          onInput={(event) => {
            changeDraft(id, () => ({ text: event.currentTarget.value }))
            menu.look()
          }}
          onSelect={menu.look}
          {...menuAria(menu)}
          onKeyDown={onKey}
        />
        {/* Two buttons and not one that changes: a click that stops must not end on one that sends. */}
        {live || isElsewhere ? (
          <button
            key="stop"
            type="button"
            class="main round"
            aria-label={t('stop')}
            title={t('stop')}
            onClick={() => stop(id!)}
          >
            <StopSquare />
          </button>
        ) : (
          <button key="send" type="submit" class="main round" aria-label={t('send')} title={t('send')} disabled={!canSend}>
            <Send />
          </button>
        )}
      </div>
    </form>
  )
}
