// What is used beside the model: the memory that it is taught, and adapters.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as alone, type Page } from '@playwright/test'
import { problems } from './accessibility'
import { answerWith, expect, Server, Studio, test } from './server'

const FACT = 'The capital of Zubrovia is Lutzhaven.'

async function taught(page: Page, visit: (studio: Studio, server: Server) => Promise<void>) {
  const folder = mkdtempSync(join(tmpdir(), 'chimere-engram-'))
  const server = new Server(['--engram', folder])
  await server.start()
  try {
    await page.goto(server.url)
    await visit(new Studio(page), server)
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const openMemory = (page: Page) => page.getByRole('link', { name: 'Memory', exact: true }).click()
const notes = (page: Page) => page.locator('.note')

alone('what is taught by hand is read when it is asked about, corrected and forgotten', async ({ page }) => {
  await taught(page, async (studio) => {
    await openMemory(page)
    await expect(page.getByText('Nothing has been taught yet.')).toBeVisible()
    await page.getByLabel('Teach something').fill(FACT)
    await page.getByRole('main').getByRole('button', { name: 'Learn' }).click()
    await expect(notes(page)).toHaveText(new RegExp(FACT))
    await expect(notes(page)).toContainText('written by hand · ')
    await expect(page.getByLabel('Teach something')).toHaveValue('')
    await expect(page.getByText(/^Notes: 1; .* of /)).toBeVisible()

    await page.getByRole('link', { name: 'Chat' }).click()
    await studio.openSettings()
    await page.getByLabel('Temperature').fill('0')
    await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
    await studio.send('Which city is the capital of Zubrovia?')
    await studio.settled()
    await expect(studio.answers.locator('.markdown')).toContainText('Lutzhaven')
    const sources = studio.answers.locator('.sources')
    await sources.locator('summary').click()
    await expect(sources).toContainText(FACT)
    await page.reload()
    await expect(sources).toContainText('Read beside the question: 1')

    await openMemory(page)
    await notes(page).getByRole('button', { name: 'Correct' }).press('Enter')
    const field = page.getByRole('textbox', { name: 'Correct' })
    await expect(field).toBeFocused()
    await field.fill('The capital of Zubrovia is Grauheim.')
    await notes(page).getByRole('button', { name: 'Learn' }).click()
    await expect(notes(page)).toHaveCount(1)
    await expect(notes(page)).toContainText('Grauheim')
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await problems(page), colorScheme).toEqual([])
    }
    await page.setViewportSize({ width: 360, height: 740 })
    expect(await problems(page), 'phone').toEqual([])
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)

    await notes(page).getByRole('button', { name: 'Forget' }).press('Enter')
    await expect(notes(page)).toHaveCount(0)
    await expect(page.getByRole('heading', { name: 'What was taught' })).toBeFocused()
    await page.getByRole('button', { name: 'Undo' }).click()
    await expect(notes(page)).toContainText('Grauheim')
    await page.getByRole('button', { name: 'Forget everything' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Forget everything' }).click()
    await expect(page.getByText('Nothing has been taught yet.')).toBeVisible()
  })
})

alone('an answer is learned where it stands, and can be taken back at once', async ({ page }) => {
  await taught(page, async (studio, server) => {
    const bodies = await answerWith(page, [{ content: FACT }])
    await studio.send('Tell me about Zubrovia')
    await studio.settled()
    expect(bodies[0]!.user).toBe('me')
    await studio.answers.getByRole('button', { name: 'Learn' }).click()
    await expect(page.getByText('Learned.')).toBeVisible()
    const kept = async () => (await (await page.request.get(`${server.url}/v1/engram/notes?user=me`)).json()).data
    expect(await kept()).toMatchObject([{ text: FACT, source: 'Tell me about Zubrovia' }])
    await page.getByRole('button', { name: 'Forget it' }).click()
    await expect.poll(async () => (await kept()).length).toBe(0)

    // Notes are not read where that is not wanted, and belong to their name.
    await studio.openSettings()
    await page.getByLabel('Read my notes').uncheck()
    await studio.send('Again')
    await studio.settled()
    expect(bodies[1]!.engram).toEqual({ notes: 0 })
    await openMemory(page)
    await page.getByLabel('Whose memory').fill('ann')
    await page.keyboard.press('Tab')
    await page.getByLabel('Teach something').fill('Ann likes tea.')
    await page.getByRole('main').getByRole('button', { name: 'Learn' }).click()
    await expect(notes(page)).toHaveCount(1)
    expect(await kept()).toEqual([])
    await page.getByLabel('Whose memory').fill('me')
    await page.keyboard.press('Tab')
    await expect(notes(page)).toHaveCount(0)
  })
})

test('a server that cannot be taught says so, and one without adapters offers none', async ({ studio, page }) => {
  await studio.openSettings()
  await expect(page.getByLabel('Wording: medical')).toBeVisible() // tables that come with the program
  await expect(page.getByRole('group', { name: 'LoRA adapters' })).toHaveCount(0)
  await expect(page.getByLabel('Read my notes')).toHaveCount(0)
  await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
  await openMemory(page)
  await expect(page.getByText('This server keeps no notes')).toBeVisible()
  await expect(page.locator('main pre')).toHaveText('chimere serve --engram ~/chimere-notes')
  await expect(page.getByLabel('Teach something')).toHaveCount(0)
})

test('adapters, tables and passages are chosen in the settings and reach the server', async ({ page, server }) => {
  await page.route('**/v1/lora', (route) =>
    route.fulfill({ json: { data: [{ name: 'poem', scale: 1 }, { name: 'law', scale: 0.8 }] } }),
  )
  await page.route('**/v1/engram?*', (route) =>
    route.fulfill({ json: { tables: [{ name: 'garden' }, { name: 'kitchen' }], passages: ['atlas'], own: null } }),
  )
  await page.goto(server.url)
  const studio = new Studio(page)
  const bodies = await answerWith(page, [{ content: 'ok' }])
  await studio.send('Plain')
  await studio.settled()
  expect([bodies[0]!.lora, bodies[0]!.engram]).toEqual([undefined, undefined])
  await studio.openSettings()
  await page.getByLabel('poem', { exact: true }).check()
  await page.getByLabel('Scale of poem').fill('0.5')
  await page.getByLabel('law', { exact: true }).check()
  await page.getByLabel('Wording: garden').check()
  await page.getByLabel('Passages to read').selectOption('atlas')
  expect(await problems(page)).toEqual([])
  await studio.send('With all of it')
  await studio.settled()
  expect(bodies[1]!.lora).toEqual([{ name: 'poem', scale: 0.5 }, { name: 'law', scale: 0.8 }])
  expect(bodies[1]!.engram).toEqual({ tables: ['garden'], passages: 'atlas' })

  // What the server does not have any more is not asked for.
  await page.unroute('**/v1/lora')
  await page.unroute('**/v1/engram?*')
  await page.reload()
  await expect(page.locator('.model-name')).not.toBeEmpty()
  await studio.send('Without')
  await studio.settled()
  expect([bodies[2]!.lora, bodies[2]!.engram]).toEqual([undefined, undefined])
})
