// The page without its server: installed, opened, read; and never an old one while the server is there.
import { createServer, request as ask } from 'node:http'
import { gunzipSync } from 'node:zlib'
import type { AddressInfo } from 'node:net'
import { test, type Page } from '@playwright/test'
import { expect, Server, Studio } from './server'

test.use({ serviceWorkers: 'allow' })

const isKept = (page: Page) => page.evaluate(async () => (await navigator.serviceWorker.ready).active !== null)

test('opens without its server, with its conversations, and goes on when the server is back', async ({ page }) => {
  const server = new Server()
  await server.start()
  try {
    const said: string[] = []
    page.on('console', (message) => message.type() === 'error' && said.push(message.text()))
    await page.goto(server.url)
    const studio = new Studio(page)
    expect(await isKept(page)).toBe(true)
    await studio.send('What is 3 + 4?')
    await studio.settled()
    expect(said).toEqual([])
    await server.stop()
    await page.reload()
    await expect(page.getByRole('alert')).toContainText('The server does not answer.')
    await expect(studio.questions).toContainText('What is 3 + 4?')
    await expect(studio.answers.locator('.markdown')).not.toBeEmpty()
    // Also what is loaded only when it is looked at, and from another tab.
    await studio.openSettings()
    await page.getByRole('link', { name: 'Which models fit which memory' }).click()
    await expect(page.getByRole('heading').filter({ hasText: /model/i }).first()).toBeVisible()
    const other = await page.context().newPage()
    await other.goto(`${server.url}/studio/`)
    await expect(other.getByRole('article', { name: 'You' })).toContainText('What is 3 + 4?')
    await other.close()

    await server.start()
    await expect(page.getByText('The server answers again.')).toBeVisible()
    await page.getByRole('link', { name: 'Chat' }).click()
    await studio.send('What is 3 + 5?')
    await studio.settled()
    await expect(studio.answers).toHaveCount(2)
    await expect(studio.answers.locator('.problem')).toHaveCount(0)
    // Nothing of the API is kept.
    const kept = await page.evaluate(async () => {
      const names = await caches.keys()
      const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()))
      return requests.flat().map((request) => new URL(request.url).pathname)
    })
    expect(kept).toContain('/')
    expect(kept.filter((path) => path !== '/' && !path.startsWith('/studio/'))).toEqual([])
  } finally {
    await server.stop()
  }
})

test('a server that is there is believed at once, and one behind a broken proxy is gone', async ({ page }) => {
  const server = new Server()
  await server.start()
  let title = 'Chimère'
  let isBroken = false
  const proxy = createServer((request, response) => {
    if (isBroken) return void response.writeHead(502).end('bad gateway')
    const onward = ask(server.url + request.url, { method: request.method, headers: request.headers }, async (answer) => {
      if (request.url !== '/') {
        response.writeHead(answer.statusCode!, answer.headers)
        return void answer.pipe(response)
      }
      const pieces: Buffer[] = []
      for await (const piece of answer) pieces.push(piece)
      const body = Buffer.concat(pieces)
      const { 'content-length': _, 'content-encoding': __, etag: ___, ...headers } = answer.headers
      response.writeHead(200, headers)
      response.end(gunzipSync(body).toString().replace('<body>', `<body data-version="${title}">`))
    })
    request.pipe(onward)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  try {
    await page.goto(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`)
    expect(await isKept(page)).toBe(true)
    await expect(page.locator('body')).toHaveAttribute('data-version', 'Chimère')
    title = 'newer'
    await page.reload()
    await expect(page.locator('body')).toHaveAttribute('data-version', 'newer')
    isBroken = true
    await page.reload()
    await expect(page.getByRole('heading', { name: 'What shall we talk about?' })).toBeVisible()
  } finally {
    proxy.closeAllConnections()
    proxy.close()
    await server.stop()
  }
})

test('can be installed: a manifest with icons, of the right types, under a policy as strict as before', async ({ page }) => {
  const server = new Server()
  await server.start()
  try {
    await page.goto(server.url)
    const get = (path: string) => page.request.get(server.url + path)
    const index = await get('/')
    expect(index.headers()['content-security-policy']).toContain("default-src 'none'; script-src 'self'")
    expect(index.headers()['content-security-policy']).not.toContain('unsafe')
    const link = await page.locator('link[rel=manifest]').getAttribute('href')
    const answer = await get(link!)
    expect(answer.headers()['content-type']).toBe('application/manifest+json')
    const manifest = await answer.json()
    expect(manifest).toMatchObject({ name: 'Chimère', start_url: '/', display: 'standalone' })
    for (const { src, type, purpose } of manifest.icons) {
      const icon = await get(src)
      expect(icon.status(), purpose).toBe(200)
      expect(icon.headers()['content-type']).toBe(type)
    }
    const worker = await get('/studio/sw.js')
    expect(worker.headers()).toMatchObject({ 'service-worker-allowed': '/', 'cache-control': 'no-cache' })
    const session = await page.context().newCDPSession(page)
    const { errors } = await session.send('Page.getAppManifest')
    expect(errors).toEqual([])
    const { installabilityErrors } = await session.send('Page.getInstallabilityErrors')
    // The tests' own windows are private ones; nothing else stands against it.
    expect(installabilityErrors.map(({ errorId }) => errorId)).toEqual(['in-incognito'])
  } finally {
    await server.stop()
  }
})
