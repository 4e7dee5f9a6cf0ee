// Keys and restarts: servers of their own.
import { problems } from './accessibility'
import { expect, Server, Studio, test as shared } from './server'
import { test } from '@playwright/test'

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

test('says that the server is gone, and goes on when it is back', async ({ page }) => {
  const server = new Server()
  await server.start()
  try {
    await page.goto(server.url)
    const studio = new Studio(page)
    await studio.send('Hello')
    await studio.settled()
    await server.stop()
    await studio.send('Are you there?')
    await expect(page.getByRole('alert')).toContainText('The server does not answer.')
    await expect(studio.answers.last()).toContainText('The connection broke')
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
