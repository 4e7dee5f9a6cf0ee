// dialog.tsx  Questions that must be answered first: the browser's own <dialog> keeps the focus inside.
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { signal } from '@preact/signals'
import { t } from '../i18n'
import { keyQuestion } from '../store/session'

interface Props {
  title: string
  onCancel: () => void
  onSubmit: () => void
  children: ComponentChildren
}

function Dialog({ title, onCancel, onSubmit, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  // At once, so that the focus it comes back to is that of the moment when it was asked for.
  useLayoutEffect(() => {
    const box = dialog.current!
    box.showModal()
    return () => box.close() // which gives the focus back to where it was
  }, [])
  return (
    <dialog
      ref={dialog}
      aria-labelledby="dialog-title"
      aria-describedby="dialog-hint"
      onCancel={(event) => {
        event.preventDefault()
        onCancel()
      }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onSubmit()
        }}
      >
        <h2 id="dialog-title">{title}</h2>
        {children}
      </form>
    </dialog>
  )
}

export function KeyDialog() {
  const question = keyQuestion.value
  const input = useRef<HTMLInputElement>(null)
  if (!question) return null
  return (
    <Dialog
      title={t('keyTitle')}
      onCancel={() => question.answer(null)}
      onSubmit={() => question.answer(input.current?.value.trim() ?? '')}
    >
      <p id="dialog-hint">{t('keyHint')}</p>
      {question.wasRefused && (
        <p class="problem" role="alert">
          {t('keyRefused')}
        </p>
      )}
      <label>
        {t('keyLabel')}
        <input ref={input} type="password" autocomplete="off" spellcheck={false} required />
      </label>
      <div class="buttons">
        <button type="button" class="quiet" onClick={() => question.answer(null)}>
          {t('cancel')}
        </button>
        <button type="submit" class="main">
          {t('keyUse')}
        </button>
      </div>
    </Dialog>
  )
}

interface Kind {
  otherwise?: string // what the other button says, in place of Cancel
  hint?: string // what there is to know, below the question
  isHarmless?: boolean // nothing is lost by a yes
}
interface Question extends Kind {
  text: string
  verb: string
  onYes: () => void
}
const asked = signal<Question | null>(null)

export const confirmThen = (text: string, verb: string, onYes: () => void, kind: Kind = {}) =>
  (asked.value = { text, verb, onYes, ...kind })

export function ConfirmDialog() {
  const question = asked.value
  if (!question) return null
  const close = () => (asked.value = null)
  return (
    <Dialog
      title={question.text}
      onCancel={close}
      onSubmit={() => {
        close()
        question.onYes()
      }}
    >
      {question.hint && <p id="dialog-hint">{question.hint}</p>}
      <div class="buttons">
        <button type="button" class="quiet" onClick={close}>
          {question.otherwise ?? t('cancel')}
        </button>
        <button type="submit" class={question.isHarmless ? 'main' : 'danger'}>
          {question.verb}
        </button>
      </div>
    </Dialog>
  )
}
