// variant_switch.tsx  Which variant of a message is shown, and the way to the others.
import { useRef } from 'preact/hooks'
import { t } from '../i18n'
import { chooseVariant } from '../store/generation'
import { Back, Forward } from '../ui/icons'

interface Props {
  conversationId: string
  messageId: string
  place: number // of the one that is shown
  count: number
  isBusy: boolean
}

// The message that takes the place of another has a switch of its own: whoever pressed a key finds it there.
function focusNext(group: HTMLElement | null, kind: 'back' | 'forward') {
  const message = group?.closest('.message')
  const at = message ? [...document.querySelectorAll('.message')].indexOf(message) : -1
  requestAnimationFrame(() => {
    const buttons = document.querySelectorAll('.message')[at]?.querySelectorAll<HTMLButtonElement>('.variants button')
    const wanted = buttons?.[kind === 'back' ? 0 : 1]
    ;(wanted?.disabled ? buttons?.[kind === 'back' ? 1 : 0] : wanted)?.focus()
  })
}

export function VariantSwitch({ conversationId, messageId, place, count, isBusy }: Props) {
  const group = useRef<HTMLDivElement>(null)
  if (count < 2) return null
  const go = (kind: 'back' | 'forward') => {
    focusNext(group.current, kind)
    chooseVariant(conversationId, messageId, place + (kind === 'back' ? -1 : 1))
  }
  return (
    <div class="variants" role="group" aria-label={t('variants')} ref={group}>
      <button
        type="button"
        class="quiet small"
        aria-label={t('variantBefore')}
        title={t('variantBefore')}
        disabled={isBusy || place === 0}
        onClick={() => go('back')}
      >
        <Back />
      </button>
      <span>
        {place + 1} / {count}
      </span>
      <button
        type="button"
        class="quiet small"
        aria-label={t('variantNext')}
        title={t('variantNext')}
        disabled={isBusy || place === count - 1}
        onClick={() => go('forward')}
      >
        <Forward />
      </button>
    </div>
  )
}
