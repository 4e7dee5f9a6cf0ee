// pairing.ts  An address with a code in it, #pair=CODE, as `serve --lan` shows it: the code becomes a key of this browser.
//
// It is taken out of the address bar at once, so that it is in no bookmark, history or picture of the screen, though it
// works only once.
import { t } from '../i18n'
import { notify } from '../ui/notice'
import { keepKey } from './session'

// Requests wait for it: without a key they would be refused.
export let admission: Promise<void> = Promise.resolve()

async function exchange(code: string) {
  try {
    const response = await fetch('/v1/pair', { method: 'POST', headers: { Authorization: `Bearer ${code}` } })
    const body = await response.json()
    if (!response.ok) throw new Error(body?.error?.message ?? response.statusText)
    keepKey(body.key)
    notify(t('pairingWorked'))
  } catch (error) {
    notify(t('pairingFailed', { reason: error instanceof Error ? error.message : String(error) }), 'error')
  }
}

const codeIn = (hash: string) => /^#pair=(\w{1,128})$/.exec(hash)?.[1]

// Between the address and the event that tells of it others must leave it alone, or the code is lost.
export const isCodeInAddress = () => codeIn(location.hash) !== undefined

function takeCode() {
  const code = codeIn(location.hash)
  if (!code) return
  history.replaceState(null, '', location.pathname + location.search)
  admission = exchange(code)
}

takeCode()
addEventListener('hashchange', takeCode)
