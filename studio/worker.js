// worker.js  Serves the page when its server is gone. While the server answers, what it says is what is shown: files whose
// names change with their content may come from here, the others only when asking failed. The API is never touched.
//
// offline.mjs puts two lines above this: NAME, which changes with the page, and FILES, all of it.

const isGone = (response) => response.status >= 502 && response.status <= 504 // so says a proxy before it

async function keep() {
  const cache = await caches.open(NAME)
  await cache.addAll(FILES.map((path) => new Request(path, { cache: 'no-cache' })))
  await self.skipWaiting()
}

async function tidy() {
  const names = await caches.keys()
  await Promise.all(names.filter((name) => name.startsWith('chimere-') && name !== NAME).map((name) => caches.delete(name)))
  await self.clients.claim()
}

async function serverFirst(request, path) {
  const kept = async () => (await caches.open(NAME)).match(path)
  try {
    const response = await fetch(request)
    return isGone(response) ? ((await kept()) ?? response) : response
  } catch (error) {
    const response = await kept()
    if (response) return response
    throw error
  }
}

const keptFirst = async (request) => (await (await caches.open(NAME)).match(request)) ?? fetch(request)

self.addEventListener('install', (event) => event.waitUntil(keep()))
self.addEventListener('activate', (event) => event.waitUntil(tidy()))
self.addEventListener('fetch', (event) => {
  const { pathname, origin } = new URL(event.request.url)
  if (event.request.method !== 'GET' || origin !== location.origin) return
  const path = pathname === '/studio' || pathname === '/studio/' ? '/' : pathname
  if (path.startsWith('/studio/assets/')) event.respondWith(keptFirst(event.request))
  else if (FILES.includes(path)) event.respondWith(serverFirst(event.request, path))
})
