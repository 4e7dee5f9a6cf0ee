// Conversations on the server: two browsers of one key agree, also after a time without the server.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type Browser, type Page } from '@playwright/test'
import { problems } from './accessibility'
import { answerWith, expect, Server, Studio } from './server'

const KEY = 'open-sesame-1234567890'

const entries = (page: Page) => page.locator('.sidebar .entry')

async function started(options: string[] = []) {
  const server = new Server(['--api-key', KEY, ...options], {
    hasDiskCache: false,
    env: { CHIMERE_HOME: mkdtempSync(join(tmpdir(), 'chimere-sync-')) },
  })
  await server.start()
  return server
}

// A browser of its own, which has the key and keeps its conversations on the server.
async function open(browser: Browser, server: Server, isOn = true): Promise<Studio> {
  const page = await (await browser.newContext()).newPage()
  await page.addInitScript(`sessionStorage.setItem('chimere.key', '${KEY}')`)
  await page.goto(server.url)
  const studio = new Studio(page)
  if (isOn) await turn(studio)
  return studio
}

const keepSwitch = ({ page }: Studio) => page.getByRole('switch', { name: 'Keep conversations on this server' })

async function turn(studio: Studio) {
  await studio.openSettings()
  await keepSwitch(studio).click()
  await studio.page.getByRole('complementary', { name: 'Settings' }).getByRole('button', { name: 'Close' }).click()
}

async function ask(studio: Studio, question: string, answer: string) {
  await studio.page.unroute('**/v1/chat/completions')
  await answerWith(studio.page, [{ content: answer }])
  await studio.send(question)
  await studio.settled()
}

async function inServer(server: Server): Promise<{ id: string; revision: number }[]> {
  const response = await fetch(`${server.url}/v1/conversations`, { headers: { 'x-api-key': KEY } })
  return (await response.json()).data
}

test('two browsers agree: what is written, renamed and deleted in one shows in the other', async ({ browser }) => {
  const server = await started()
  try {
    const desk = await open(browser, server)
    const phone = await open(browser, server)
    await ask(desk, 'A question of the desk', 'first answer')
    await expect(entries(phone.page)).toHaveText(['A question of the desk'])
    await entries(phone.page).click()
    await expect(phone.answers).toHaveText(/first answer/)
    await ask(phone, 'A question of the phone', 'second answer')
    await expect(desk.answers.last()).toHaveText(/second answer/)
    await expect(desk.answers).toHaveCount(2)
    // All versions come along.
    await answerWith(desk.page, [{ content: 'another answer' }])
    await desk.answers.last().getByRole('button', { name: 'Regenerate' }).click()
    await expect(phone.answers.last()).toHaveText(/another answer/)
    await phone.button('Earlier version').click()
    await expect(desk.answers.last()).toHaveText(/second answer/)
    expect(await inServer(server)).toHaveLength(1)

    await desk.button('Delete “A question of the desk”').click()
    await expect(entries(phone.page)).toHaveCount(0)
    expect(await inServer(server)).toHaveLength(0)
    await desk.button('Undo').click()
    await expect(entries(phone.page)).toHaveText(['A question of the desk'])
  } finally {
    await server.stop()
  }
})

test('what both changed without each other stays twice', async ({ browser }) => {
  const server = await started()
  try {
    const desk = await open(browser, server)
    const phone = await open(browser, server)
    await ask(desk, 'Shared', 'answer')
    await expect(entries(phone.page)).toHaveText(['Shared'])
    await entries(phone.page).click()
    // The phone is away, asks nothing of the server, and changes what it has; so does the desk.
    await phone.page.route('**/v1/conversations**', (route) => route.abort())
    await ask(phone, 'Written on the phone', 'phone answer')
    await ask(desk, 'Written at the desk', 'desk answer')
    await expect.poll(async () => (await inServer(server))[0]!.revision).toBeGreaterThan(1)
    await phone.page.unroute('**/v1/conversations**')
    for (const { page } of [desk, phone]) {
      await expect(entries(page)).toHaveCount(2)
      await expect(entries(page).filter({ hasText: 'Shared (copy of this browser)' })).toHaveCount(1)
    }
    await expect(phone.page.getByText('both are kept')).toBeVisible()
    await entries(desk.page).filter({ hasText: 'copy of this browser' }).click()
    await expect(desk.answers.last()).toHaveText(/phone answer/)
    await entries(phone.page).filter({ hasNotText: 'copy of this browser' }).click()
    await expect(phone.answers.last()).toHaveText(/desk answer/)
  } finally {
    await server.stop()
  }
})

test('works without the server and merges when it is back', async ({ browser }) => {
  const server = await started()
  try {
    const desk = await open(browser, server)
    await ask(desk, 'Kept', 'answer')
    await expect.poll(() => inServer(server)).toHaveLength(1)
    await server.stop()
    await desk.button('New conversation').click()
    await ask(desk, 'Written without a server', 'answer')
    await desk.button('Delete “Kept”').click()
    await server.start()
    const phone = await open(browser, server)
    await expect(entries(phone.page)).toHaveText(['Written without a server'])
    await expect(entries(desk.page)).toHaveText(['Written without a server'])
  } finally {
    await server.stop()
  }
})

test('is off until it is wanted; switching it off offers to delete there', async ({ browser }) => {
  const server = await started()
  try {
    const desk = await open(browser, server, false)
    await ask(desk, 'Mine alone', 'answer')
    await desk.openSettings()
    await expect(keepSwitch(desk)).not.toBeChecked()
    expect(await inServer(server)).toEqual([])
    await keepSwitch(desk).click()
    await expect(desk.page.getByText('Conversations on the server: 1')).toBeVisible()
    expect(await problems(desk.page), 'settings').toEqual([])
    const phone = await open(browser, server)
    await expect(entries(phone.page)).toHaveText(['Mine alone'])

    // Kept there at first.
    await keepSwitch(desk).click()
    await desk.button('Keep them there').click()
    expect(await inServer(server)).toHaveLength(1)
    await keepSwitch(desk).click()
    await expect(desk.page.getByText('Conversations on the server: 1')).toBeVisible()
    await phone.openSettings() // off as well, so that it does not send its own again
    await keepSwitch(phone).click()
    await phone.button('Keep them there').click()
    await keepSwitch(desk).click()
    await desk.button('Delete there').click()
    await expect.poll(() => inServer(server)).toEqual([])
    await expect(entries(desk.page)).toHaveText(['Mine alone'])
    await expect(entries(phone.page)).toHaveText(['Mine alone'])
  } finally {
    await server.stop()
  }
})

test('what does not fit is said, and stays in the browser; a server that keeps none says so', async ({ browser }) => {
  const server = await started(['--conversations-mb', '1'])
  const other = await started(['--no-conversations'])
  try {
    const desk = await open(browser, server)
    let sent = 0
    desk.page.on('request', (request) => {
      if (request.method() === 'PUT') sent++
    })
    await ask(desk, 'Long', 'x'.repeat(1_200_000))
    await expect(desk.page.getByText('Not kept on the server')).toBeVisible()
    const first = sent
    for (let looks = 0; looks < 2; looks++) {
      await desk.page.waitForResponse((response) => response.url().endsWith('/v1/conversations'))
    }
    expect(sent, 'it is not sent again and again').toBe(first)
    await desk.page.reload()
    await expect(entries(desk.page)).toHaveText(['Long'])
    const none = await open(browser, other)
    await none.openSettings()
    await expect(none.page.getByText('This server keeps no conversations.')).toBeVisible()
  } finally {
    await server.stop()
    await other.stop()
  }
})
