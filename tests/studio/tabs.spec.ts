// Two tabs of one browser.
import { readFileSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { problems } from './accessibility'
import { answerWith, expect, Studio, test } from './server'

const list = (page: Page) => page.locator('.sidebar .entry')

async function another(page: Page): Promise<Studio> {
  const second = await page.context().newPage()
  await second.goto(page.url())
  return new Studio(second)
}

test('what changes in one tab shows in the other, without a reload', async ({ studio, page }) => {
  const other = await another(page)
  await answerWith(page, [{ content: 'first answer' }, { content: 'second answer' }])
  await studio.send('A question')
  await studio.settled()
  await expect(list(other.page)).toHaveText(['A question'])
  await list(other.page).click()
  await expect(other.answers).toHaveText(/first answer/)
  await studio.button('Regenerate').click()
  await expect(other.answers).toHaveText(/second answer/)
  await other.button('Earlier version').click()
  await expect(studio.answers).toHaveText(/first answer/)

  // A title, a pin, a draft, a setting, and what is deleted.
  await list(page).press('F2')
  await page.getByRole('textbox', { name: 'Title of the conversation' }).fill('Another name')
  await page.keyboard.press('Enter')
  await expect(list(other.page)).toHaveText(['Another name'])
  await other.button('Pin “Another name”').click()
  await expect(page.getByRole('heading', { name: 'Pinned' })).toBeVisible()
  await studio.input.fill('half a thought')
  await expect(other.input).toHaveValue('half a thought')
  await studio.openSettings()
  await studio.choose('Theme', 'dark')
  await expect(other.page.locator('html')).toHaveAttribute('data-theme', 'dark')
  await other.button('Delete “Another name”').click()
  await expect(list(page)).toHaveCount(0)
  await expect(studio.questions).toHaveCount(0)
  await other.button('Undo').click()
  await expect(list(page)).toHaveText(['Another name'])
  await studio.button('Delete all conversations').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await expect(other.page.getByText('No conversations yet.')).toBeVisible()
})

test('an answer is written by one tab, shown in the other as it grows, and can be stopped there', async ({ page, slow }) => {
  await page.goto(slow.url)
  const studio = new Studio(page)
  await studio.send('A long one')
  await expect.poll(() => slow.isAsked).toBe(true)
  slow.write({ content: 'Once upon' })
  await expect(studio.answers).toContainText('Once upon')
  // Opened in the middle of it.
  const other = await another(page)
  await expect(other.answers).toContainText('Once upon')
  await expect(other.answers).toHaveAttribute('aria-busy', 'true')
  await expect(other.page.getByText('The answer is being written in another tab.')).toBeVisible()
  for (const word of [' a time', ' there was', ' a robot']) {
    slow.write({ content: word })
    await expect(other.answers).toContainText(word.trim())
  }
  await expect(other.button('Edit')).toBeDisabled()
  await other.input.fill('me too')
  await other.input.press('Enter')
  await expect(other.questions).toHaveCount(1)
  expect(await problems(other.page)).toEqual([])

  await other.button('Stop').click()
  await expect.poll(() => slow.hasLeft).toBe(true)
  await studio.settled()
  for (const tab of [studio, other]) {
    await expect(tab.answers).toContainText('Once upon a time there was a robot')
    await expect(tab.answers).toContainText('Stopped.')
    await expect(tab.answers).toHaveAttribute('aria-busy', 'false')
  }
  await expect(other.button('Send')).toBeEnabled()
})

test('of two tabs that begin the same answer at the same moment one gives way', async ({ page, slow }) => {
  await page.goto(slow.url)
  const studio = new Studio(page)
  await studio.send('At the same moment')
  await expect.poll(() => slow.isAsked).toBe(true)
  // As a page with a smaller name says it, again and again.
  await page.evaluate(() => {
    const id = location.hash.slice(4)
    const channel = new BroadcastChannel('chimere')
    setInterval(() => channel.postMessage({ kind: 'writing', id, by: '0', messageId: 'theirs', text: {} }), 300)
  })
  await expect.poll(() => slow.hasLeft).toBe(true)
  await expect(page.getByText('The answer is being written in another tab.')).toBeVisible()
  await expect(studio.answers).not.toContainText('Stopped.')
})

// What a tab tells the others, held back until it is let go.
async function holdNews(page: Page): Promise<() => Promise<void>> {
  await page.evaluate(() => {
    const post = BroadcastChannel.prototype.postMessage
    const held: (() => void)[] = []
    BroadcastChannel.prototype.postMessage = function (news) {
      held.push(() => post.call(this, news))
    }
    Object.assign(window, {
      letGo: () => {
        BroadcastChannel.prototype.postMessage = post
        for (const send of held) send()
      },
    })
  })
  return () => page.evaluate(() => (window as unknown as { letGo: () => void }).letGo())
}

test('of two tabs that ask at the same moment one has its question back', async ({ page, slow }) => {
  await page.goto(slow.url)
  const studio = new Studio(page)
  await studio.send('Before')
  await expect.poll(() => slow.isAsked).toBe(true)
  slow.write({ content: 'Yes' })
  slow.end()
  await studio.settled()
  const other = await another(page)
  await expect(other.questions).toHaveText([/Before/])
  const release = [await holdNews(page), await holdNews(other.page)]
  await studio.send('Question one')
  await other.send('Question two')
  await expect(studio.questions).toHaveText([/Before/, /one/])
  await expect(other.questions).toHaveText([/Before/, /two/])
  for (const letGo of release) await letGo()
  const told = (tab: Studio) => tab.page.getByText('Another tab asked first.')
  await expect.poll(async () => (await told(studio).count()) + (await told(other).count())).toBe(1)
  const isFirst = (await told(other).count()) === 1
  for (const tab of [studio, other]) await expect(tab.questions).toHaveText([/Before/, isFirst ? /one/ : /two/])
  await expect((isFirst ? other : studio).input).toHaveValue(isFirst ? 'Question two' : 'Question one')
})

test('the answer of a tab that was closed is not waited for', async ({ page, slow }) => {
  await page.goto(slow.url)
  const studio = new Studio(page)
  await studio.send('A long one')
  await expect.poll(() => slow.isAsked).toBe(true)
  slow.write({ content: 'Half of it' })
  const other = await another(page)
  await expect(other.answers).toContainText('Half of it')
  await expect(other.answers).toHaveAttribute('aria-busy', 'true')
  await page.close()
  await expect(other.answers).toHaveAttribute('aria-busy', 'false')
  await expect(other.answers).toContainText('Stopped.')
  await expect(other.button('Continue')).toBeEnabled()
})

test('all conversations go into one Markdown file, and come back', async ({ studio, page }) => {
  const tricky = 'A text\n\n<!-- chimere:conversation {} -->\n# No title'
  await answerWith(page, [{ content: 'one' }, { content: tricky }, { content: 'other' }])
  await studio.send('First')
  await studio.settled()
  await studio.button('Pin “First”').click()
  await studio.button('New conversation').click()
  await studio.send('Second')
  await studio.settled()
  await studio.button('Regenerate').click()
  await studio.settled()
  await studio.openSettings()
  const download = page.waitForEvent('download')
  await studio.button('Export all (Markdown)').click()
  expect((await download).suggestedFilename()).toBe('chimere-conversations.md')
  const buffer = readFileSync((await (await download).path())!)
  await studio.button('Delete all conversations').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.locator('input[data-purpose=import]').setInputFiles([{ name: 'all.md', mimeType: 'text/markdown', buffer }])
  await expect(page.getByText('Conversations imported: 2')).toBeVisible()
  await expect(list(page)).toHaveText(['First', 'Second'])
  await expect(page.getByRole('heading', { name: 'Pinned' })).toBeVisible()
  await list(page).last().click()
  await expect(studio.answers).toHaveText(/other/)
  await studio.button('Earlier version').click()
  await expect(studio.answers.locator('.markdown')).toContainText('No title')
})
