// What the page says about where things are kept, and that deleting reaches all of it.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as alone, type Page } from '@playwright/test'
import { answerWith, expect, Server, Studio, test } from './server'

const CLEAR = 'Clear the server’s cache'

// A server with a cache of 460 MB; returns how often it was cleared.
async function withCache(page: Page) {
  const calls: string[] = []
  let bytes = 460_000_000
  await page.route('**/v1/cache', (route) => {
    const method = route.request().method()
    calls.push(method)
    if (method === 'DELETE') {
      const cleared = bytes
      bytes = 0
      return route.fulfill({ json: { object: 'cache', cleared_bytes: cleared, cleared_entries: bytes ? 12 : 0 } })
    }
    const rest = { directory: '/home/ann/.local/share/chimere/prefix-cache', limit_bytes: 8e9, entries: 12 }
    return route.fulfill({ json: { object: 'cache', enabled: true, bytes, memory_bytes: 2_500_000, ...rest } })
  })
  return () => calls.filter((method) => method === 'DELETE').length
}

test('nothing claims that prompts are in the browser alone', async ({ studio, page }) => {
  await expect(page.locator('.empty')).not.toContainText('alone')
  await expect(page.locator('.empty')).toContainText('Conversations are kept in this browser')
  await expect(page.locator('.empty')).toContainText('the server keeps computed states of prompts, which contain their text')
})

test('the settings say what the server keeps, and clear it', async ({ studio, page }) => {
  const cleared = await withCache(page)
  await studio.openSettings()
  const kept = page.getByRole('group', { name: 'Where it is kept' })
  await expect(kept).toContainText('460 MB on its disk, of at most 8 GB, and 2.5 MB in its memory')
  await expect(kept).toContainText('prefix-cache')
  await studio.button(CLEAR).click()
  await expect(page.getByText('The server’s cache was cleared (460 MB).')).toBeVisible()
  await expect(kept).toContainText('0 B on its disk')
  expect(cleared()).toBe(1)
})

test('a server without a disk cache says that it keeps prompts in memory', async ({ studio, page }) => {
  const memory = { enabled: true, directory: null, bytes: 0, limit_bytes: 0, entries: 3, memory_bytes: 2_500_000 }
  await page.route('**/v1/cache', (route) => route.fulfill({ json: { object: 'cache', ...memory } }))
  await studio.openSettings()
  await expect(page.getByRole('group', { name: 'Where it is kept' })).toContainText('2.5 MB in its memory, none on disk.')
})

test('deleting all conversations clears the server’s part too', async ({ studio, page }) => {
  const cleared = await withCache(page)
  await answerWith(page, [{ content: 'ok' }])
  await studio.send('A secret')
  await studio.settled()
  await studio.openSettings()
  await expect(studio.button(CLEAR)).toBeVisible()
  await studio.button('Delete all conversations').click()
  const dialog = page.getByRole('dialog')
  await expect(dialog).toContainText('and what the server’s cache holds of prompts')
  expect(cleared()).toBe(0)
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await expect(page.getByText('The server’s cache was cleared (460 MB).')).toBeVisible()
  expect(cleared()).toBe(1)
  await expect(page.getByText('No conversations yet.')).toBeVisible()
})

test('a server that cannot clear says why, and one that does not know the request has no button', async ({ studio, page }) => {
  await withCache(page)
  await studio.openSettings()
  await expect(studio.button(CLEAR)).toBeVisible()
  await page.route('**/v1/cache', (route) =>
    route.fulfill({ status: 500, json: { error: { message: 'the disk is read-only' } } }),
  )
  await studio.button(CLEAR).click()
  await expect(page.getByText('The server’s cache was not cleared: the disk is read-only')).toBeVisible()
  await page.route('**/v1/cache', (route) => route.fulfill({ status: 404, json: { error: { message: 'no such path' } } }))
  await page.reload()
  await studio.openSettings()
  await expect(page.getByRole('group', { name: 'Where it is kept' })).toContainText('in this browser')
  await expect(studio.button(CLEAR)).toHaveCount(0)
})

alone('the real server’s cache is shown and cleared', async ({ page }) => {
  const folder = mkdtempSync(join(tmpdir(), 'chimere-cache-'))
  const server = new Server(['--cache-dir', folder], { hasDiskCache: true })
  await server.start()
  try {
    await page.goto(server.url)
    const studio = new Studio(page)
    await studio.send('Write a short story about a robot and a bird.')
    await studio.settled()
    const answer = await page.request.get(`${server.url}/v1/cache`)
    await studio.openSettings()
    const kept = page.getByRole('group', { name: 'Where it is kept' })
    if (answer.status() === 404) {
      await expect(studio.button(CLEAR)).toHaveCount(0)
      return
    }
    const inMemory = async () => (await (await page.request.get(`${server.url}/v1/cache`)).json()).memory_bytes
    expect(await inMemory()).toBeGreaterThan(0)
    await expect(kept).toContainText('on its disk')
    await studio.button(CLEAR).click()
    await expect(page.getByText(/The server’s cache was cleared/)).toBeVisible()
    const after = await (await page.request.get(`${server.url}/v1/cache`)).json()
    expect([after.bytes, after.entries, after.memory_bytes]).toEqual([0, 0, 0])
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})
