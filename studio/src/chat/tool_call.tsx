// tool_call.tsx  A call that the model wants made. Nothing is run: the user gives the result.
import { useState } from 'preact/hooks'
import { t } from '../i18n'
import type { ToolCall } from '../store/conversations'
import { giveResult } from '../store/generation'

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

interface Props {
  conversationId: string
  call: ToolCall
  isOpen: boolean // its result is missing
}

export function ToolCallView({ conversationId, call, isOpen }: Props) {
  const [result, setResult] = useState('')
  return (
    <section class="tool-call" aria-label={t('toolCall', { name: call.name })}>
      <h3>{t('toolCall', { name: call.name })}</h3>
      <pre tabIndex={0}>{pretty(call.arguments)}</pre>
      {isOpen && (
        <form
          onSubmit={(event) => {
            event.preventDefault()
            giveResult(conversationId, call.id, result)
          }}
        >
          <label>
            {t('toolResult')}
            <textarea rows={2} value={result} onInput={(event) => setResult(event.currentTarget.value)} />
          </label>
          <button type="submit" class="small">
            {t('toolSend')}
          </button>
        </form>
      )}
    </section>
  )
}
