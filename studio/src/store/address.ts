// address.ts  The open conversation in the address of the page, #/c/ID: back and forward go from one to the other, and a
// reload stays.
import { effect } from '@preact/signals'
import { t } from '../i18n'
import { notify } from '../ui/notice'
import { screen } from '../ui/route'
import { find, isLoaded, openId } from './conversations'
import { isCodeInAddress } from './pairing'

export const addressOf = (id: string | null) => (id ? `#/c/${id}` : '#/')

const idInAddress = () => /^#\/c\/(\w+)$/.exec(location.hash)?.[1] ?? null

// What the address says becomes what is shown.
function follow() {
  const id = idInAddress()
  if (id && find(id)) openId.value = id
  else if (id && isLoaded.value) notify(t('conversationUnknown'), 'error')
  lead()
}

// What is shown becomes what the address says. An address of nothing is no place to go back to.
function lead() {
  const wanted = addressOf(openId.value)
  if (screen.value !== 'chat' || !isLoaded.value || location.hash === wanted || isCodeInAddress()) return
  const id = idInAddress()
  if (location.hash.length < 3 || (id && !find(id))) history.replaceState(null, '', wanted)
  else location.hash = wanted
}

export function startAddress() {
  openId.value = idInAddress()
  addEventListener('hashchange', follow)
  effect(lead)
}

export function openInChat(id: string) {
  openId.value = id
  screen.value = 'chat'
}
