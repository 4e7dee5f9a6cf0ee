// approval.tsx  A call that waits for a word: what would be run, and whether it may.
import { useEffect, useRef, useState } from 'preact/hooks'
import { t } from '../i18n'
import { answerApproval } from '../store/odo'
import type { Run, StepDetail } from '../store/run'
import { announce } from '../ui/announcer'
import { CallArguments } from './call_arguments'

const composer = () => document.querySelector<HTMLTextAreaElement>('.composer textarea')

// Whoever writes or reads elsewhere is not called away; whoever waits is.
function isWaiting(): boolean {
  const active = document.activeElement
  if (!active || active === document.body) return true
  return active.closest('.composer') !== null && !composer()?.value
}

function ApprovalCard({ id, detail }: { id: string; detail: StepDetail }) {
  const [isAnswered, setIsAnswered] = useState(false)
  const card = useRef<HTMLElement>(null)
  const title = t('approvalTitle', { tool: detail.tool })
  useEffect(() => {
    announce(title)
    // The card and not its button: an Enter that was meant for something else allows nothing.
    if (isWaiting()) card.current?.focus({ preventScroll: true })
  }, [])
  const answer = async (allow: boolean) => {
    setIsAnswered(true)
    const next = [...document.querySelectorAll<HTMLElement>('.approval')].find((other) => other !== card.current)
    ;(next ?? composer())?.focus({ preventScroll: true }) // this card goes away
    if (!(await answerApproval(id, allow))) setIsAnswered(false)
  }
  return (
    <section class="approval" role="group" aria-label={title} tabIndex={-1} ref={card}>
      <h3>{title}</h3>
      <p class="hint">{t('approvalHint')}</p>
      <CallArguments json={detail.arguments} />
      <div class="buttons wrap">
        <button type="button" class="main" disabled={isAnswered} onClick={() => void answer(true)}>
          {t('approvalAllow')}
        </button>
        <button type="button" disabled={isAnswered} onClick={() => void answer(false)}>
          {t('approvalDeny')}
        </button>
      </div>
    </section>
  )
}

export const Approvals = ({ run }: { run: Run }) => (
  <>
    {run.steps.map(({ state, detail }) =>
      state === 'asks' && detail?.approval_id ? (
        <ApprovalCard key={detail.approval_id} id={detail.approval_id} detail={detail} />
      ) : null,
    )}
  </>
)
