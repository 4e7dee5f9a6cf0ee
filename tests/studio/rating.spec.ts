// What a person thinks of an answer: asked once whether answers may be kept, then told, corrected, seen and erased.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as alone, type Page } from '@playwright/test'
import { looksRight, problems } from './accessibility'
import { expect, Server, Studio } from './server'

async function withJournal(page: Page, options: string[], visit: (studio: Studio, server: Server) => Promise<void>) {
  const folder = mkdtempSync(join(tmpdir(), 'chimere-journal-'))
  const server = new Server(['--journal', join(folder, 'journal.db'), ...options])
  await server.start()
  try {
    await page.goto(server.url)
    await visit(new Studio(page), server)
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const DANGER = 'rgb(166, 27, 27)' // of what deletes

const kept = async (server: Server) => {
  const user = '?user=me'
  const named = await (await fetch(`${server.url}/v1/learning/answers${user}`)).json()
  const nameless = await (await fetch(`${server.url}/v1/learning/answers`)).json()
  return [...named.data, ...nameless.data]
}

alone('a thumb asks first whether answers may be kept, and the answer that was rated is', async ({ page }) => {
  await withJournal(page, [], async (studio, server) => {
    await studio.send('Hello!')
    await studio.settled()
    expect(await kept(server)).toEqual([])
    const good = studio.answers.getByRole('button', { name: 'Good answer' })
    const bad = studio.answers.getByRole('button', { name: 'Bad answer' })

    await good.click()
    const question = page.getByRole('dialog', { name: 'May the server keep your answers to become better?' })
    await expect(question).toHaveAccessibleDescription(/stay on its machine/)
    // A yes loses nothing: it does not look like Delete.
    await expect(page.getByRole('button', { name: 'Keep them' })).not.toHaveCSS('border-top-color', DANGER)
    await expect(page.getByRole('button', { name: 'Keep them' })).not.toHaveCSS('color', DANGER)
    await page.getByRole('button', { name: 'Not now' }).click()
    await expect(good).toHaveAttribute('aria-pressed', 'false')
    expect(await kept(server)).toEqual([])

    await good.press('Enter')
    await page.getByRole('button', { name: 'Keep them' }).click()
    await expect(good).toHaveAttribute('aria-pressed', 'true')
    await expect.poll(async () => (await kept(server))[0]?.rating).toBe(5)

    await bad.click()
    await expect(good).toHaveAttribute('aria-pressed', 'false')
    await page.getByLabel('What would have been right?').fill('Good morning!')
    await studio.answers.locator('form').getByRole('button', { name: 'Send' }).click()
    await expect(page.getByText('Thank you: that is kept.')).toBeVisible()
    await expect.poll(async () => (await kept(server))[0]?.feedback.at(-1)?.text).toBe('Good morning!')
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await problems(page)).toEqual([])
    }
    await bad.click()
    await bad.click()
    await page.setViewportSize({ width: 360, height: 740 })
    await expect(page.getByLabel('What would have been right?')).toBeVisible()
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)
    const [field, answer] = await Promise.all([page.getByLabel('What would have been right?').boundingBox(), studio.answers.boundingBox()])
    expect(field!.width).toBeGreaterThan(answer!.width * 0.9)

    await page.reload()
    await expect(bad).toHaveAttribute('aria-pressed', 'true')
    await bad.click()
    await expect(bad).toHaveAttribute('aria-pressed', 'false')
    await expect.poll(async () => (await kept(server))[0]?.feedback.some(({ kind }: { kind: string }) => kind === 'down')).toBe(false)
  })
})

alone('what is kept is counted and erased in Memory, and who takes the agreement back is not kept any more', async ({ page }) => {
  await withJournal(page, ['--learn', 'on'], async (studio, server) => {
    await studio.send('Hello!')
    await studio.settled()
    await expect.poll(async () => (await kept(server)).length).toBe(1)
    await page.getByRole('link', { name: 'Memory', exact: true }).click()
    const may = page.getByLabel('My answers may be kept to learn from')
    await expect(may).toBeChecked()
    await expect(page.getByText(/^Answers kept: 1 /)).toBeVisible()
    await may.uncheck()
    await page.getByRole('link', { name: 'Chat' }).click()
    await studio.send('And again?')
    await studio.settled()
    expect((await kept(server)).length).toBe(1)

    await page.getByRole('link', { name: 'Memory', exact: true }).click()
    await page.getByRole('button', { name: 'Erase what is kept' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Erase what is kept' }).click()
    await expect(page.getByText('Answers erased: 1.')).toBeVisible()
    await expect(page.getByText(/^Answers kept: 0 /)).toBeVisible()
    expect(await kept(server)).toEqual([])
  })
})

alone('where nothing is kept there are no thumbs, and no Memory without notes', async ({ page }) => {
  await withJournal(page, ['--learn', 'off'], async (studio) => {
    await studio.send('Hello!')
    await studio.settled()
    await expect(studio.answers.getByRole('button', { name: 'Copy' })).toBeVisible()
    await expect(studio.answers.getByRole('button', { name: 'Good answer' })).toHaveCount(0)
    await expect(page.getByRole('link', { name: 'Memory', exact: true })).toHaveCount(0)
    await page.goto(page.url().replace(/#.*/, '#/memory'))
    await expect(page.getByText('--learn off')).toBeVisible()
  })
})

alone('what was learned, what comes next and what was tried are seen, and a job can be run now', async ({ page }) => {
  await withJournal(page, ['--learn', 'on', '--improve-idle', '1'], async (studio) => {
    await studio.send('What is 12 + 30?')
    await studio.settled()
    await page.getByRole('link', { name: 'Memory' }).click()
    await page.getByRole('link', { name: 'What was learned' }).click()
    const main = page.getByRole('main')
    await expect(main.getByText('Nothing yet: answers are those of the model as it came.')).toBeVisible()
    await expect(main.getByText('A table of the answers you accepted')).toBeVisible()
    await expect(main.getByRole('button', { name: 'When a thought may end: now' })).toBeVisible()
    await looksRight(page, 'what was learned')
    // The button stands beside what it is for, and dates are as people here write them.
    const next = main.getByRole('listitem').filter({ hasText: 'A table of the answers you accepted' }).first()
    await expect(next).toHaveText(/next at \d{1,2} \w{3,4} 20\d\d, \d\d:\d\d/)
    const [words, button] = await Promise.all([next.locator('p').boundingBox(), next.getByRole('button').boundingBox()])
    expect(button!.y).toBeLessThan(words!.y + words!.height)
    expect(button!.y + button!.height).toBeGreaterThan(words!.y)
    expect(button!.x).toBeGreaterThanOrEqual(words!.x + words!.width)
    await main.getByRole('button', { name: 'Marks for answers: now' }).press('Enter')
    await expect(page.getByText('It waits for its turn')).toBeVisible()
    const tried = main.getByRole('listitem').filter({ hasText: 'of computing' })
    await expect(tried.filter({ hasText: 'Marks for answers done' })).toBeVisible({ timeout: 30_000 })
    await looksRight(page, 'a job that ran')
  })
})
