// announcer.tsx  Short words for screen readers, which would drown in a stream of tokens.
import { signal } from '@preact/signals'

const words = signal('')

export function announce(text: string) {
  // The same words twice are a change only if something lay between.
  words.value = ''
  setTimeout(() => (words.value = text), 50)
}

export const Announcer = () => (
  <div class="hidden-text" role="status" aria-live="polite">
    {words.value}
  </div>
)
