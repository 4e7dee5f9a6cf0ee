// Finding a conversation again: by its address, by its words, by its date, by its pin.
import type { Page } from '@playwright/test'
import { problems } from './accessibility'
import { answerWith, expect, test, type Studio } from './server'

const list = (page: Page) => page.getByRole('navigation', { name: 'Conversations' })
const entry = (page: Page, name: string) => list(page).getByRole('button', { name, exact: true })
const box = (page: Page) => page.getByRole('searchbox', { name: 'Search conversations' })

async function threeConversations(studio: Studio) {
  await answerWith(studio.page, ['alpha', 'beta', 'gamma'].map((word) => ({ content: `The answer is ${word}.` })))
  for (const name of ['First', 'Second', 'Third']) {
    await studio.button('New conversation').click()
    await studio.send(name)
    await studio.settled()
  }
}

test('each conversation has an address; back, forward and reload keep to it', async ({ studio, page, server }) => {
  await threeConversations(studio)
  await entry(page, 'First').click()
  await expect(studio.answers).toHaveText(/alpha/)
  const first = page.url()
  expect(first).toMatch(/#\/c\/\w+$/)
  await entry(page, 'Third').click()
  await expect(studio.answers).toHaveText(/gamma/)
  expect(page.url()).not.toBe(first)
  await page.getByRole('link', { name: 'Status' }).click()
  await expect(page.getByRole('heading', { name: 'Throughput' })).toBeVisible()
  await page.goBack()
  await expect(studio.answers).toHaveText(/gamma/)
  await page.goBack()
  await expect(studio.answers).toHaveText(/alpha/)
  await expect(entry(page, 'First')).toHaveAttribute('aria-current', 'page')
  expect(page.url()).toBe(first)
  await page.goForward()
  await expect(studio.answers).toHaveText(/gamma/)

  // A reload and another tab open the one of the address, not the newest.
  await page.goto(first)
  await page.reload()
  await expect(studio.answers).toHaveText(/alpha/)
  const other = await page.context().newPage()
  await other.goto(first)
  await expect(other.getByRole('article', { name: 'Model' })).toHaveText(/alpha/)
  await expect(other).toHaveTitle(/First/)
  await other.close()

  // The one that is gone is no place to come back to.
  await studio.button('Delete “First”').click()
  await expect(studio.answers).toHaveText(/gamma/)
  expect(page.url()).not.toBe(first)
  await page.goto(`${server.url}/#/c/0123456789ab`)
  await expect(page.getByText('This conversation is not in this browser.')).toBeVisible()
  await expect(studio.answers).toHaveText(/gamma/)
})

test('the first message of a fresh page gives it an address', async ({ studio, page }) => {
  await answerWith(page, [{ content: 'ok' }])
  await expect(studio.input).toBeFocused()
  await studio.send('Hello')
  await studio.settled()
  await expect(page).toHaveURL(/#\/c\/\w+$/)
  await page.reload()
  await expect(studio.questions).toHaveText(/Hello/)
})

// One long conversation with something to find in the middle, and two short ones.
async function something(studio: Studio, page: Page) {
  const turns = Array.from({ length: 12 }, (_, i) => [
    { role: 'user', content: `Question ${i}` },
    {
      role: 'assistant',
      content: i === 5 ? 'Word '.repeat(200) + 'The **Crème** brûlée is in the middle. ' + 'word '.repeat(200) : 'words '.repeat(150),
    },
  ]).flat()
  const conversations = [
    { title: 'Long talk', messages: turns, created: 1, updated: Date.now() },
    { title: 'On créme', messages: [{ role: 'user', content: 'nothing here' }], created: 1, updated: Date.now() - 1000 },
    { title: 'Other', messages: [{ role: 'user', content: 'a BRULEE of cream, or creme' }], created: 1, updated: 2 },
  ].map((c) => ({ system: '', ...c }))
  await page.locator('input[data-purpose=import]').setInputFiles([
    {
      name: 'talks.json',
      mimeType: 'application/json',
      buffer: Buffer.from(JSON.stringify({ format: 'chimere-conversations', version: 1, conversations })),
    },
  ])
  await expect(page.locator('.sidebar .entry')).toHaveCount(3)
}

test('search finds titles and texts, marks the words, and Enter opens at the place', async ({ studio, page }) => {
  await something(studio, page)
  await entry(page, 'Other').click()
  await page.keyboard.press('Control+k')
  await expect(box(page)).toBeFocused()
  await page.keyboard.type('creme')
  const hits = page.locator('.hit')
  await expect(hits).toHaveCount(3)
  await expect(list(page).getByRole('status')).toHaveText('Places found: 3')
  await expect(hits.nth(0)).toContainText('Long talk')
  await expect(hits.nth(0).locator('mark')).toHaveText(['Crème'])
  await expect(hits.nth(1).locator('.title mark')).toHaveText('créme')
  await page.keyboard.type(' brulee')
  await expect(hits).toHaveCount(2)
  await expect(hits.nth(1).locator('mark')).toHaveText(['BRULEE', 'creme'])
  await page.keyboard.press('Enter')

  const found = studio.answers.nth(5)
  await expect(found).toBeFocused()
  await expect(found.getByText('Crème')).toBeInViewport()
  const marked = () =>
    page.evaluate(() => [...((CSS as any).highlights.get('found') ?? [])].map((range) => String(range)))
  expect(await marked()).toEqual(['Crème', 'brûlée'])
  // It stays there: nothing scrolls to the end by itself.
  await page.waitForTimeout(500)
  await expect(found.getByText('Crème')).toBeInViewport()
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(await problems(page), colorScheme).toEqual([])
  }

  // Arrows go through what was found, and Escape gives the list back.
  await page.keyboard.press('Control+k')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  await expect(hits.nth(1)).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(studio.questions).toHaveText(/BRULEE/)
  await box(page).focus()
  await page.keyboard.press('Escape')
  await expect(hits).toHaveCount(0)
  await expect(entry(page, 'Long talk')).toBeVisible()
  expect(await marked()).toEqual([])
  await box(page).fill('not to be found')
  await expect(list(page).getByRole('status')).toHaveText('Nothing was found.')
})

test('on a phone the search opens over the screen and closes when it has led somewhere', async ({ studio, page }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  await answerWith(page, [{ content: 'a zebra' }])
  await studio.send('An animal')
  await studio.settled()
  await page.keyboard.press('Control+k')
  await page.keyboard.type('zebra') // at once: no letter is lost
  await expect(box(page)).toHaveValue('zebra')
  await page.locator('.hit').click()
  await expect(box(page)).not.toBeVisible()
  await expect(studio.answers).toBeFocused()
})

test('what is on another branch is found, and shown', async ({ studio, page }) => {
  await answerWith(page, [{ content: 'a zebra' }, { content: 'a lion' }])
  await studio.send('An animal')
  await studio.settled()
  await studio.button('Regenerate').click()
  await studio.settled()
  await expect(studio.answers).toHaveText(/a lion/)
  await box(page).fill('zebra')
  await page.locator('.hit').click()
  await expect(studio.answers).toHaveText(/a zebra/)
  await expect(page.locator('.variants')).toHaveText('1 / 2')
})

test('the list is ordered by date, and pins come first', async ({ studio, page }) => {
  await page.clock.install({ time: new Date(2026, 2, 20, 15) })
  await page.reload()
  const at = (day: number, month = 2) => new Date(2026, month, day, 23, 55).getTime()
  const conversations = [
    ['a', at(20) - 36_000_000], ['b', at(19)], ['c', at(14)], ['d', at(25, 1)], ['e', at(5, 0)],
  ].map(([title, updated]) => ({ title, updated, created: 1, system: '', messages: [{ role: 'user', content: 'x' }] }))
  await page.locator('input[data-purpose=import]').setInputFiles([
    {
      name: 'x.json',
      mimeType: 'application/json',
      buffer: Buffer.from(JSON.stringify({ format: 'chimere-conversations', version: 1, conversations })),
    },
  ])
  const headings = list(page).getByRole('heading')
  const names = page.locator('.sidebar .entry')
  await expect(headings).toHaveText(['Today', 'Yesterday', 'Previous 7 days', 'Previous 30 days', 'January 2026'])
  await expect(names).toHaveText(['a', 'b', 'c', 'd', 'e'])

  const pin = page.getByRole('button', { name: 'Pin “d”' })
  await pin.focus()
  await page.keyboard.press('Enter')
  await expect(headings).toHaveText(['Pinned', 'Today', 'Yesterday', 'Previous 7 days', 'January 2026'])
  await expect(names).toHaveText(['d', 'a', 'b', 'c', 'e'])
  await expect(pin).toHaveAttribute('aria-pressed', 'true')
  await page.reload()
  await expect(names).toHaveText(['d', 'a', 'b', 'c', 'e'])
  await pin.click()
  await expect(names).toHaveText(['a', 'b', 'c', 'd', 'e'])

  // After midnight today is yesterday, without a reload.
  await page.clock.fastForward(10 * 3_600_000)
  await expect(headings).toHaveText(['Yesterday', 'Previous 7 days', 'Previous 30 days', 'January 2026'])
})
