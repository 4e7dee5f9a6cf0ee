// register.ts  Lets the browser keep the page, so that it can be installed and opens without its server. Browsers allow that
// on this machine and over HTTPS alone.

const WORKER = '/studio/sw.js'

interface ScriptUrls {
  createScriptURL: (url: string) => string
}

// The page's policy lets no text become the address of a script; this one address may.
function workerUrl(): string {
  const { trustedTypes } = window as { trustedTypes?: { createPolicy: (name: string, rules: ScriptUrls) => ScriptUrls } }
  return trustedTypes ? trustedTypes.createPolicy('offline', { createScriptURL: () => WORKER }).createScriptURL('') : WORKER
}

export function keepForOffline() {
  if (!('serviceWorker' in navigator) || !import.meta.env.PROD) return
  // After the first paint: nobody waits for it.
  addEventListener('load', () => {
    navigator.serviceWorker.register(workerUrl(), { scope: '/', updateViaCache: 'none' }).catch(() => undefined)
  })
}
