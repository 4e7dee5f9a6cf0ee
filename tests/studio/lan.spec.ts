// `serve --lan`: a phone opens the address of the QR code.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type Page } from '@playwright/test'
import { expect, Server, Studio } from './server'

const PHONE = { viewport: { width: 390, height: 844 } }

async function works(page: Page) {
  await expect(page.locator('.model-name')).not.toBeEmpty()
  await expect(page.getByRole('dialog')).toHaveCount(0)
}

test('a code lets one browser in, once, and it stays in when the server starts again', async ({ browser }) => {
  const home = mkdtempSync(join(tmpdir(), 'chimere-lan-'))
  const server = new Server(['--lan'], { hasDiskCache: false, env: { CHIMERE_HOME: home } })
  await server.start()
  try {
    const [address] = await server.says(/http:\/\/[\d.]+:\d+\/#pair=\w+/)
    expect(new URL(address!).hostname).not.toMatch(/^(127\.|0\.0\.0\.0)/)
    await server.says(/█/) // the QR code
    const phone = await browser.newContext(PHONE)
    const page = await phone.newPage()
    await page.goto(address!)
    await works(page)
    await expect(page.getByText('This browser was let in')).toBeVisible()
    expect(page.url()).not.toContain('pair=')
    const studio = new Studio(page)
    await studio.send('Hello')
    await studio.settled()
    await expect(studio.answers.locator('.problem')).toHaveCount(0)

    // Who has seen the code comes too late.
    const other = await browser.newContext()
    const late = await other.newPage()
    await late.goto(address!)
    await expect(late.getByText('each works once')).toBeVisible()
    await expect(late.getByRole('dialog')).toContainText('This server asks for an API key')
    // The server shows the next one: typed into the open page, it works without a reload.
    await server.says(/A browser was let in/)
    const next = await server.saysLast(/http:\/\/[\d.]+:\d+\/#pair=\w+/)
    expect(next).not.toBe(address)
    await late.goto(next)
    await works(late)

    await server.stop()
    await server.start()
    await page.reload()
    await works(page)
    const stored = await page.evaluate(() => Object.keys(localStorage).sort())
    expect(stored).toEqual(['chimere.browser-key', 'chimere.settings'])

    // --forget-browsers: nobody is known any more.
    await server.stop()
    server.add('--forget-browsers')
    await server.start()
    await page.reload()
    await expect(page.getByRole('dialog')).toContainText('This server asks for an API key')
    expect(await page.evaluate(() => localStorage.getItem('chimere.browser-key'))).toBeNull()
  } finally {
    await server.stop()
  }
})

// The address of the open conversation is written when conversations were read, and the event that tells of a new address
// comes later than the address: the code has to be there still.
test('a code that is typed in while the page still reads its conversations is not lost', async ({ browser }) => {
  const home = mkdtempSync(join(tmpdir(), 'chimere-lan-'))
  const server = new Server(['--lan'], { hasDiskCache: false, env: { CHIMERE_HOME: home } })
  await server.start()
  try {
    const [address] = await server.says(/http:\/\/[\d.]+:\d+\/#pair=\w+/)
    const page = await (await browser.newContext()).newPage()
    await page.addInitScript(() => {
      const held = new Promise<void>((resolve) => Object.assign(window, { letRead: resolve }))
      const success = Object.getOwnPropertyDescriptor(IDBRequest.prototype, 'onsuccess')!
      Object.defineProperty(IDBOpenDBRequest.prototype, 'onsuccess', {
        set(this: IDBOpenDBRequest, then: (event: Event) => void) {
          success.set!.call(this, (event: Event) => void held.then(() => then.call(this, event)))
        },
      })
      const add = window.addEventListener.bind(window)
      window.addEventListener = (type: string, then: EventListener, options?: AddEventListenerOptions) =>
        add(type, type === 'hashchange' ? (event: Event) => void setTimeout(() => then(event), 500) : then, options)
    })
    await page.goto(address!.replace(/#.*/, ''))
    await expect(page.getByRole('dialog')).toContainText('This server asks for an API key')
    await page.evaluate((code) => {
      location.hash = code
      ;(window as unknown as { letRead: () => void }).letRead()
    }, new URL(address!).hash)
    await works(page)
    await expect(page).not.toHaveURL(/pair=/)
  } finally {
    await server.stop()
  }
})
