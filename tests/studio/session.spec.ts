// Keys and restarts: servers of their own.
import { createHash } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { problems } from './accessibility'
import { answerWith, expect, Server, Studio, test as shared } from './server'
import { test, type Page } from '@playwright/test'

test('asks for the key, keeps it for the tab alone', async ({ page }) => {
  const server = new Server(['--api-key', 'open-sesame-1234567890'])
  await server.start()
  try {
    await page.goto(server.url)
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('API key').fill('wrong')
    await dialog.getByRole('button', { name: 'Use this key' }).click()
    await expect(dialog).toContainText('The server refused this key.')
    expect(await problems(page), 'key dialog').toEqual([])
    await dialog.getByLabel('API key').fill('open-sesame-1234567890')
    await dialog.getByRole('button', { name: 'Use this key' }).click()
    await expect(dialog).toHaveCount(0)
    const studio = new Studio(page)
    await studio.send('Hello')
    await studio.settled()
    await expect(studio.answers.locator('.problem')).toHaveCount(0)

    await page.reload()
    await expect(page.locator('.model-name')).not.toBeEmpty()
    await expect(dialog).toHaveCount(0)
    const stored = await page.evaluate(() => JSON.stringify({ ...localStorage }))
    expect(stored).not.toContain('open-sesame')
  } finally {
    await server.stop()
  }
})

test('the status shows the tokens of the key, and a spent budget is said in the chat', async ({ page }) => {
  const file = join(mkdtempSync(join(tmpdir(), 'chimere-keys-')), 'keys')
  const hash = createHash('sha256').update('ann-key').digest('hex')
  writeFileSync(file, `ann:${hash}:tokens-per-day=20\n`)
  const server = new Server(['--api-keys-file', file], {
    hasDiskCache: false,
    env: { CHIMERE_HOME: mkdtempSync(join(tmpdir(), 'chimere-home-')) },
  })
  await server.start()
  try {
    await page.addInitScript("sessionStorage.setItem('chimere.key', 'ann-key')")
    await page.goto(server.url)
    const studio = new Studio(page)
    await studio.send('Hello')
    await studio.settled()
    await page.goto(`${server.url}/#/status`)
    const row = page.getByRole('region', { name: 'Tokens by key' }).getByRole('row', { name: /ann/ })
    await expect(row).toContainText(/\d+ of 20/)
    expect(await problems(page), 'status').toEqual([])
    await page.goto(`${server.url}/#/`)
    await studio.send('Once more')
    await expect(studio.answers.last()).toContainText('of its 20 tokens of today')
  } finally {
    await server.stop()
  }
})

test('says that the server is gone, and goes on when it is back', async ({ page }) => {
  const server = new Server()
  await server.start()
  try {
    await page.goto(server.url)
    const studio = new Studio(page)
    await page.getByRole('link', { name: 'Memory', exact: true }).click()
    await expect(page.getByText('keeps no notes')).toBeVisible()
    await page.getByRole('link', { name: 'Chat' }).click()
    await studio.send('Hello')
    await studio.settled()
    await server.stop()
    await studio.send('Are you there?')
    await expect(page.getByRole('alert')).toContainText('The server does not answer.')
    await expect(studio.answers.last()).toContainText('The server does not answer: nothing of this was written.')
    await expect(studio.answers.last().getByRole('button')).toHaveText(['Try again'])
    // What it had is not taken for gone, and no page says so twice.
    await page.getByRole('link', { name: 'Memory', exact: true }).click()
    await expect(page.getByRole('heading', { name: 'Memory', level: 1 })).toBeVisible()
    await expect(page.getByRole('link', { name: 'Memory', exact: true })).toHaveAttribute('aria-current', 'page')
    await expect(page.getByText('keeps no notes')).toHaveCount(0)
    await expect(page.locator('.notice')).toHaveCount(0)
    await page.getByRole('link', { name: 'Chat' }).click()
    await server.start()
    await expect(page.getByText('The server answers again.')).toBeVisible()
    await expect(page.getByRole('alert')).not.toContainText('The server does not answer.')
    await studio.answers.last().getByRole('button', { name: 'Try again' }).click()
    await studio.settled()
    await expect(studio.answers).toHaveCount(2)
    await expect(studio.answers.locator('.problem')).toHaveCount(0)
  } finally {
    await server.stop()
  }
})

shared('what is sent before the kept conversations have been read stays', async ({ server, page }) => {
  await page.addInitScript(() => {
    const getAll = IDBObjectStore.prototype.getAll
    IDBObjectStore.prototype.getAll = function () {
      const real = getAll.call(this)
      const late = {} as { result?: unknown; onsuccess?: () => void }
      real.onsuccess = () =>
        setTimeout(() => {
          late.result = real.result
          late.onsuccess?.()
          document.documentElement.dataset.read = 'late'
        }, 2000)
      return late as unknown as IDBRequest
    }
  })
  await page.goto(server.url)
  const studio = new Studio(page)
  await studio.send('Hello')
  await expect(studio.questions).toHaveText(/Hello/)
  await expect(page.locator('html[data-read]')).toBeAttached()
  await expect(studio.questions).toHaveText(/Hello/)
  await studio.settled()
})

// The records of a store are read at once, and the page is told of them only when the test says so.
async function holdReading(page: Page, store: string) {
  await page.addInitScript((held) => {
    const getAll = IDBObjectStore.prototype.getAll
    let isHeld = true
    const tellers: (() => void)[] = []
    const tellAll = () => {
      isHeld = false
      tellers.splice(0).forEach((tell) => tell())
      document.documentElement.dataset.told = held
    }
    Object.assign(window, { tellAll })
    IDBObjectStore.prototype.getAll = function () {
      const real = getAll.call(this)
      if (this.name !== held) return real
      const late = {} as { result?: unknown; onsuccess?: () => void }
      const tell = () => {
        late.result = real.result
        late.onsuccess?.()
      }
      real.onsuccess = () => {
        if (!isHeld) return tell()
        tellers.push(tell)
        document.documentElement.dataset.read = held
      }
      return late as unknown as IDBRequest
    }
  }, store)
  return {
    isRead: () => expect(page.locator(`html[data-read=${store}]`)).toBeAttached(),
    tell: () => page.evaluate(() => (window as unknown as { tellAll: () => void }).tellAll()),
  }
}

shared('a draft that is emptied before the kept ones have been read stays empty', async ({ studio, page }) => {
  await studio.input.pressSequentially('old words')
  await page.reload()
  await expect(studio.input).toHaveValue('old words')
  await page.reload()
  const reading = await holdReading(page, 'drafts')
  await page.reload()
  await reading.isRead()
  await studio.input.fill('x')
  await studio.input.fill('')
  await reading.tell()
  await studio.openSettings() // which waits for nothing that is kept
  await expect(studio.input).toHaveValue('')
  await page.reload()
  await reading.tell()
  await expect(studio.input).toHaveValue('')
})

shared('conversations that are deleted before the kept ones have been read stay away', async ({ studio, page }) => {
  await answerWith(page, [{ content: 'ok' }])
  await studio.send('An old question')
  await studio.settled()
  await studio.input.pressSequentially('an old draft')
  const reading = await holdReading(page, 'conversations')
  await page.reload()
  await reading.isRead()
  await studio.send('A new question')
  await studio.settled()
  await studio.openSettings()
  await studio.button('Delete all conversations').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await expect(studio.questions).toHaveCount(0)
  await reading.tell()
  const list = page.getByRole('navigation', { name: 'Conversations' })
  await expect(page.locator('html[data-told]')).toBeAttached()
  await expect(list.getByRole('button', { name: 'An old question', exact: true })).toHaveCount(0)
  await expect(studio.questions).toHaveCount(0)
  await expect(studio.input).toHaveValue('')
})

shared('keeps nothing but conversations, drafts and settings, and asks nobody else', async ({ studio, server, page }) => {
  const foreign: string[] = []
  page.on('request', (request) => {
    if (!request.url().startsWith(server.url) && !/^(data|blob):/.test(request.url())) foreign.push(request.url())
  })
  await page.reload()
  await studio.send('Hello')
  await studio.settled()
  await page.goto(`${server.url}/#/status`)
  await expect(page.getByRole('heading', { name: 'Throughput' })).toBeVisible()
  expect(foreign).toEqual([])
  expect(await page.evaluate(() => Object.keys(localStorage))).toEqual(['chimere.settings'])
  expect(await page.evaluate(() => document.cookie)).toBe('')
  const databases = await page.evaluate(async () => (await indexedDB.databases()).map((d) => d.name))
  expect(databases.sort()).toEqual(['chimere', 'chimere-drafts'])
})
