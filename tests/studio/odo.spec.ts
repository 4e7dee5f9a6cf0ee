// The orchestrator: choosing it, the steps of an answer, calls that wait for a word, sources, and its screen.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as alone, type Page } from '@playwright/test'
import { looksRight, problems } from './accessibility'
import { expect, Server, SlowChat, Studio, test } from './server'

const closeSettings = (page: Page) => page.locator('.panel').getByRole('button', { name: 'Close' }).click()

// The orchestrator answers, always in the same words.
async function chooseOdo(studio: Studio, route = '') {
  await studio.openSettings()
  await studio.page.getByLabel('Temperature').fill('0')
  await studio.choose('Answers come from', 'odo')
  if (route) await studio.choose('Route', route)
  await closeSettings(studio.page)
}

// What the page asks of the server.
function bodiesOf(page: Page): Record<string, any>[] {
  const bodies: Record<string, any>[] = []
  page.on('request', (request) => {
    if (request.url().endsWith('/v1/chat/completions')) bodies.push(request.postDataJSON())
  })
  return bodies
}

test('a sum is computed, and the steps stay with the answer', async ({ studio, page }) => {
  const bodies = bodiesOf(page)
  await chooseOdo(studio)
  await expect(page.locator('.model-name')).toContainText('· odo')
  await studio.send('What is 48271 * 3947?')
  await studio.settled()
  expect(bodies[0]).toMatchObject({ model: 'odo', odo: { approve: true } })
  await expect(studio.answers.locator('.markdown')).toContainText('190525637')
  const run = studio.answers.locator('.run')
  await expect(run.locator('summary')).toHaveText(/^Route \w+ · 3 steps · [\d.,]+ m?s$/)
  await run.locator('summary').press('Enter')
  const steps = run.getByRole('listitem')
  await expect(steps).toHaveCount(3)
  await expect(steps.nth(0)).toContainText('Choosing the route')
  await expect(steps.nth(1)).toContainText(/Calculating.*48271 \* 3947/)
  await expect(steps.nth(1).locator('pre')).toHaveText(['190525637'])
  await expect(steps.nth(2)).toContainText(/Asking the model[\d.,]+ m?s · [\d,]+ tokens/)
  await looksRight(page, 'steps')

  const download = page.waitForEvent('download')
  await studio.openSettings()
  await studio.button('Export (Markdown)').click()
  const markdown = readFileSync(await (await download).path(), 'utf8')
  expect(markdown).toMatch(/chimere:steps -->\nRoute \w+\n- route: .*\n- calculate: 48271 \* 3947 \(\d+ ms\)\n- answer \(/)

  await page.reload()
  await expect(run.locator('summary')).toHaveText(/^Route \w+ · 3 steps · /)
  await run.locator('summary').click()
  await expect(steps.nth(1)).toContainText('190525637')
  await studio.openSettings()
  await expect(page.getByLabel('Answers come from')).toHaveValue('odo')

  // Another conversation is answered by the model alone until that is chosen there.
  await page.keyboard.press('Alt+n')
  await expect(page.getByLabel('Answers come from')).toHaveValue('')
  await studio.send('Hello')
  await studio.settled()
  expect([bodies[1]!.model, bodies[1]!.odo]).toEqual([undefined, undefined])
  await expect(studio.answers.locator('.run')).toHaveCount(0)
})

test('the mode and the route are asked for, and no name of the orchestrator is a model', async ({ studio, page }) => {
  const bodies = bodiesOf(page)
  await studio.openSettings()
  await expect(page.getByRole('combobox', { name: 'Model' }).locator('option')).toHaveText(['chimere-nano'])
  await studio.choose('Answers come from', 'odo')
  await page.getByRole('combobox', { name: 'Mode', exact: true }).selectOption('fast')
  await studio.choose('Route', 'default')
  expect(await problems(page)).toEqual([])
  await page.reload() // a conversation that is not begun keeps it as well
  await studio.send('Hello')
  await studio.settled()
  expect(bodies[0]).toMatchObject({ model: 'odo', odo: { approve: true, mode: 'fast', route: 'default' } })
  await expect(studio.answers.locator('.run summary')).toHaveText(/^Route default · Fast · \d+ steps · /)
})

alone('a server without the orchestrator offers none and is asked for none', async ({ page }) => {
  const server = new Server(['--no-odo'])
  await server.start()
  try {
    const bodies = bodiesOf(page)
    await page.goto(server.url)
    const studio = new Studio(page)
    await expect(page.locator('.model-name')).toHaveText('chimere-nano')
    await studio.openSettings()
    await expect(page.getByRole('combobox', { name: 'Thinking' })).toBeVisible()
    await expect(page.getByLabel('Answers come from')).toHaveCount(0)
    await expect(page.getByRole('link', { name: 'Orchestrator' })).toHaveCount(0)
    const odo = { mode: '', route: '' }
    const kept = { title: 'From elsewhere', odo, messages: [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Hi!' }] }
    const text = JSON.stringify({ format: 'chimere-conversations', version: 1, conversations: [kept] })
    const file = { name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(text) }
    await page.locator('[data-purpose=import]').setInputFiles(file)
    await studio.send('Hello')
    await studio.settled()
    expect([bodies[0]!.model, bodies[0]!.odo]).toEqual([undefined, undefined])
    await page.goto(`${server.url}/#/odo`)
    await expect(page.getByText('This server has no orchestrator')).toBeVisible()
  } finally {
    await server.stop()
  }
})

alone('a call that needs a word waits for it, and runs or does not', async ({ page }) => {
  const folder = mkdtempSync(join(tmpdir(), 'chimere-routes-'))
  writeFileSync(join(folder, 'code.yaml'), 'title: Programs\ntools: [run_code]\n')
  writeFileSync(join(folder, 'broken.yaml'), 'title: [\n')
  const server = new Server(['--odo-routes', folder])
  await server.start()
  try {
    await page.goto(server.url)
    const studio = new Studio(page)
    await page.getByRole('link', { name: 'Orchestrator' }).click()
    const main = page.getByRole('main')
    await expect(main.locator('.entry').filter({ hasText: 'Programs' })).toContainText('run_code')
    await expect(main.locator('.problems')).toContainText('broken.yaml')
    await expect(main.locator('.entry').filter({ hasText: 'Computes an arithmetic expression' })).toContainText('runs by itself')
    await expect(main.getByText('Nothing was answered by it yet.')).toBeVisible()
    await page.getByRole('link', { name: 'Chat' }).click()

    const tools = await (await page.request.get(`${server.url}/v1/odo/tools`)).json()
    alone.skip(!tools.data.some((tool: any) => tool.name === 'run_code'), 'this machine has no sandbox for run_code')
    await chooseOdo(studio, 'code')
    await studio.send('Run this code: print(2+2)')
    const card = page.getByRole('group', { name: 'May run_code be run?' })
    await expect(card).toBeFocused()
    await expect(card).toContainText(/print\(2 ?\+ ?2\)/)
    await looksRight(page, 'approval')
    await page.keyboard.press('Tab') // past the arguments, which can be scrolled
    await page.keyboard.press('Tab')
    await expect(card.getByRole('button', { name: 'Allow' })).toBeFocused()
    await page.keyboard.press('Enter')
    await studio.settled()
    await expect(card).toHaveCount(0)
    await expect(studio.input).toBeFocused()
    const called = studio.answers.last().locator('.steps > li').filter({ hasText: 'Calling run_code' })
    await studio.answers.last().locator('.run summary').click()
    await expect(called.first()).toHaveAttribute('data-state', 'done')
    await expect(called.first().locator('pre').last()).toContainText('4')

    await page.keyboard.press('Alt+n')
    await chooseOdo(studio, 'code')
    await studio.send('Run this code: print(2+2)')
    await card.getByRole('button', { name: 'Deny' }).click()
    // The model may ask again; whoever stops is asked no more.
    await expect(called.first()).toHaveAttribute('data-state', 'skipped')
    await expect(called.first()).toContainText('the user did not allow this call')
    if (await studio.button(/^Stop$/).isVisible()) await page.keyboard.press('Escape')
    await studio.settled()
    await expect(card).toHaveCount(0)

    await page.getByRole('link', { name: 'Orchestrator' }).click()
    await expect(main.locator('.runs > li')).toHaveCount(2)
    const first = main.locator('.runs > li').last()
    await expect(first.locator('summary')).toHaveText(/^\d\d:\d\d · Route code · \d+ steps · [\d.,]+ m?s · [\d,]+ tokens$/)
    await first.locator('summary').click()
    await expect(first.locator('.steps > li').filter({ hasText: 'Calling run_code' }).first()).toContainText(/print\(2 ?\+ ?2\)/)
    await looksRight(page, 'screen')
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('collections, the web and tools are chosen for a conversation, shown as chips, and asked for', async ({ page, slow }) => {
  await page.route('**/v1/collections', (route) => {
    const one = (name: string) => ({ name, documents: 1, chunks: 1, bytes: 10 })
    const room = { documents: 2, chunks: 2, bytes: 20 }
    return route.fulfill({ json: { data: [one('garden'), one('kitchen')], used: room, limits: { ...room, collections: 9, document_bytes: 9 } } })
  })
  let hasWeb = true
  await page.route('**/v1/odo/status', async (route) => {
    const answer = await route.fetch()
    await route.fulfill({ json: { ...(await answer.json()), web: hasWeb } })
  })
  const bodies = bodiesOf(page)
  await page.goto(slow.url)
  const studio = new Studio(page)
  const button = page.getByRole('button', { name: 'Sources and tools' })
  await expect(page.locator('.model-name')).toHaveText('chimere-nano')
  await expect(button).toHaveCount(0) // the model alone uses none of it
  await chooseOdo(studio)
  await button.press('Enter')
  const choices = page.getByRole('group', { name: 'Sources and tools' })
  await choices.getByRole('combobox', { name: 'Collections' }).selectOption('these')
  await choices.getByRole('checkbox', { name: 'kitchen' }).uncheck()
  await choices.getByRole('combobox', { name: 'Web' }).selectOption('yes')
  await choices.getByRole('combobox', { name: 'Tools' }).selectOption('none')
  const chips = page.getByRole('list', { name: 'Sources and tools' })
  await expect(chips.getByRole('listitem')).toHaveText(['garden', 'Search the web', 'No tools'])
  await looksRight(page, 'choices')
  await page.keyboard.press('Escape')
  await expect(choices).toHaveCount(0)
  await expect(button).toBeFocused()
  const ask = async (text: string) => {
    await studio.send(text)
    await expect.poll(() => slow.isAsked).toBe(true)
    slow.end()
    await studio.settled()
  }
  await ask('One')
  expect(bodies.at(-1)!.odo).toEqual({ approve: true, collections: ['garden'], web: true, tools: [] })
  await page.reload()
  await expect(chips.getByRole('listitem')).toHaveText(['garden', 'Search the web', 'No tools'])

  // Another conversation has its own.
  await page.keyboard.press('Alt+n')
  await chooseOdo(studio)
  await expect(chips).toHaveCount(0)
  await ask('Two')
  expect(bodies.at(-1)!.odo).toEqual({ approve: true })
  await page.goBack()

  await chips.getByRole('button', { name: 'Remove No tools' }).press('Enter')
  await expect(button).toBeFocused()
  await chips.getByRole('button', { name: 'Remove garden' }).click()
  await expect(chips.getByRole('listitem')).toHaveText(['Search the web'])
  await button.click()
  await choices.getByRole('combobox', { name: 'Tools' }).selectOption('these')
  await choices.getByRole('checkbox', { name: 'clock' }).uncheck()
  await choices.getByRole('combobox', { name: 'Collections' }).selectOption('none')
  await ask('Three')
  expect(bodies.at(-1)!.odo).toMatchObject({ approve: true, collections: [], web: true })
  expect(bodies.at(-1)!.odo.tools).toContain('calculator')
  expect(bodies.at(-1)!.odo.tools).not.toContain('clock')

  // Where there is nothing to search with, that is said and nothing is asked of it.
  hasWeb = false
  await page.reload()
  await button.click()
  await expect(choices.getByRole('combobox', { name: 'Web' })).toBeDisabled()
  await expect(choices.getByText('serve --searxng URL')).toBeVisible()
  await ask('Four')
  expect(bodies.at(-1)!.odo.web).toBe(undefined)
})

alone('servers of tools are listed with their state, and tools with what may be done with them', async ({ page }) => {
  const folder = mkdtempSync(join(tmpdir(), 'chimere-mcp-'))
  const script = join(folder, 'server.mjs')
  writeFileSync(script, TOOL_SERVER)
  const config = join(folder, 'odo.yaml')
  writeFileSync(
    config,
    `mcp_servers:\n  notes:\n    command: [${process.execPath}, ${script}]\n  broken:\n    command: [sh, -c, "read greeting; echo no licence >&2; exit 3"]\n` +
      'tools: {clock: deny}\n',
  )
  const server = new Server(['--odo-config', config, '--odo-routes', folder])
  await server.start()
  try {
    await page.goto(`${server.url}/#/odo`)
    const entries = page.getByRole('main').locator('.entry')
    const notes = entries.filter({ hasText: 'Calls itself' })
    await expect(notes).toHaveAttribute('data-state', 'running')
    await expect(notes).toContainText('runs')
    await expect(notes).toContainText('example 1.0')
    await expect(notes).toContainText('notes__look')
    const broken = page.getByRole('main').locator('.entry[data-state=failed]')
    await expect(broken).toContainText('does not run')
    await expect(broken).toContainText('the program ended with exit code 3: no licence')
    const policyOf = (name: string) => entries.filter({ has: page.locator('strong', { hasText: new RegExp(`^${name}$`) }) }).locator('.badge')
    await expect(policyOf('notes__look')).toHaveText('asks first')
    await expect(policyOf('calculator')).toHaveText('runs by itself')
    await expect(policyOf('clock')).toHaveText('is refused')
    await looksRight(page, 'servers of tools')
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})

// A server of tools with one tool, as small as the protocol allows.
const TOOL_SERVER = `
import { createInterface } from 'node:readline'
const results = {
  initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'example', version: '1.0' } },
  'tools/list': { tools: [{ name: 'look', description: 'Looks into the notes.', inputSchema: { type: 'object' } }] },
}
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }))
})
`

test('a number in the answer opens the passage it names', async ({ page, slow }) => {
  const studio = await slowly(page, slow)
  const long = 'The beans of Orlo are planted in May. '.repeat(20).trim()
  const sources = [
    { n: 1, title: 'Beans, line 1', document: 'a/beans & co.md', collection: 'garden', snippet: long },
    { n: 2, title: 'A page', url: 'https://example.org/a', snippet: 'Short.' },
  ]
  slow.tell({ odo: { id: 'odo-1', route: 'default', steps: [step(0, 'retrieve', 'done', { about: '2 texts', detail: { sources } })] } })
  slow.write({ content: 'In May [1], and not in June [2] [3]. Code: `list[1]`\n\n| when | where |\n|---|---|\n| May [1] | Orlo |\n' })
  slow.end()
  await studio.settled()
  const answer = studio.answers.last()
  const numbers = answer.locator('.markdown').getByRole('button', { name: /^\[\d\]: show the source$/ })
  await expect(numbers).toHaveText(['[1]', '[2]', '[1]']) // neither one that names nothing nor code
  const cited = answer.getByRole('region', { name: 'Sources' }).getByRole('listitem')
  const height = async () => (await cited.first().locator('p').boundingBox())!.height
  const brief = await height()
  await numbers.first().press('Enter')
  await expect(cited.first()).toBeFocused()
  await expect.poll(height).toBeGreaterThan(brief)
  await looksRight(page, 'passage')
  const fold = cited.first().getByRole('button', { name: 'Show less of source 1' })
  await expect(fold).toHaveAttribute('aria-expanded', 'true')
  await fold.press('Enter')
  await expect.poll(height).toBe(brief)
  await expect(cited.first().getByRole('button', { name: 'Whole passage of source 1' })).toBeFocused()
  await numbers.nth(1).click()
  await expect(cited.nth(1)).toBeFocused()
  await expect(cited.first().getByRole('link')).toHaveAttribute('href', '#/files/garden/a%2Fbeans%20%26%20co.md')
  await page.reload()
  await numbers.last().click()
  await expect(cited.first()).toBeFocused()
})

// A conversation that the orchestrator answers in the words of the test.
async function slowly(page: Page, slow: SlowChat): Promise<Studio> {
  await page.goto(slow.url)
  const studio = new Studio(page)
  await chooseOdo(studio)
  await studio.send('Do it')
  await expect.poll(() => slow.isAsked).toBe(true)
  return studio
}

const step = (index: number, stage: string, state: string, more: object = {}) => ({ index, stage, state, ms: 5, ...more })

test('steps show as they come, and what they say is text', async ({ page, slow }) => {
  const studio = await slowly(page, slow)
  const summary = studio.answers.locator('.run summary')
  slow.tell({ odo: { id: 'odo-1', route: 'code', steps: [step(0, 'route', 'done'), step(1, 'architect', 'running')] } })
  await expect(summary).toHaveText('Route code · 2 steps · Step “architect”')
  await summary.click()
  const steps = studio.answers.locator('.steps > li')
  await expect(steps.nth(1)).toContainText('running')
  slow.tell({ odo: { steps: [step(1, 'architect', 'done', { tokens: 12 }), step(2, 'tool', 'running', { about: 'fetch' })] } })
  await expect(steps.nth(1)).toContainText('12 tokens')
  await expect(summary).toHaveText('Route code · 3 steps · Calling fetch')
  const hostile = '<img src=x onerror="document.title=1">'
  const detail = { tool: 'fetch', arguments: { url: hostile }, result: hostile, is_untrusted: true }
  slow.tell({ odo: { steps: [step(2, 'tool', 'done', { about: 'fetch', detail })] } })
  await expect(steps.nth(2).locator('pre')).toHaveText([hostile, hostile])
  await expect(steps.nth(2)).toContainText('from outside')
  slow.tell({ odo: { steps: [step(3, 'web', 'failed', { about: 'no answer in 5 s' }), step(4, 'grade', 'skipped', { about: 'nothing to grade' })] } })
  await expect(steps.nth(3)).toContainText('failed')
  await expect(steps.nth(3)).toContainText('no answer in 5 s')
  await expect(steps.nth(4)).toContainText('nothing to grade')
  slow.tell({ odo: 'nonsense' })
  slow.tell({ odo: { steps: [null, 7, { index: -1 }, { index: 1e9 }, { index: 5, stage: {}, state: 'odd', detail: [] }] } })
  slow.write({ content: 'Done' })
  slow.end('length')
  await studio.settled()
  await expect(steps).toHaveCount(6)
  expect(await problems(page)).toEqual([])

  // An answer that goes on keeps the steps it has.
  await studio.button('Continue').click()
  await expect.poll(() => slow.isAsked).toBe(true)
  slow.tell({ odo: { id: 'odo-2', route: 'code', steps: [step(0, 'route', 'done'), step(1, 'answer', 'running')] } })
  await expect(steps).toHaveCount(8)
  await page.keyboard.press('Escape')
  await studio.settled()
  await expect(steps.nth(7)).toContainText('stopped')
})

test('what a search tried is shown with its scores, and what was chosen', async ({ page, slow }) => {
  const studio = await slowly(page, slow)
  const hostile = '<b onclick="x()">56</b>'
  const branches = [
    { text: 'There are 56 bulbs.', score: 0.93, votes: 1.8, why: '2 checks hold', chosen: true, steps: [{ text: '45 + 23 = 68.', score: 0.97 }] },
    { text: hostile, score: 0, why: '68 - 12 = 57 is not right', chosen: false },
    null,
    { text: {}, score: 'much', steps: [7] },
  ]
  slow.tell({ odo: { id: 'odo-1', route: 'default', steps: [step(0, 'route', 'done'), step(1, 'search', 'running', { detail: { kind: 'dvts', branches: [{ tokens: 3 }] } })] } })
  await expect(studio.answers.locator('.run summary').first()).toContainText('Searching for the best answer')
  slow.tell({ odo: { steps: [step(1, 'search', 'done', { tokens: 90, detail: { kind: 'dvts', branches } }), step(2, 'gate', 'done', { about: '5 of 5' })] } })
  slow.write({ content: 'There are 56 bulbs.' })
  slow.end('stop')
  await studio.settled()
  await studio.answers.locator('.run > summary').click()
  const ways = studio.answers.locator('.ways > li')
  await expect(ways).toHaveCount(3)
  await expect(ways.nth(0)).toContainText('93 %')
  await expect(ways.nth(0)).toContainText('chosen')
  await expect(ways.nth(1)).toContainText(hostile)
  await expect(ways.nth(1)).toContainText('68 - 12 = 57 is not right')
  await ways.nth(0).locator('summary').click()
  await expect(ways.nth(0)).toContainText('45 + 23 = 68. 97 %')
  await expect(studio.answers.locator('.steps > li').nth(2)).toContainText('Judging the answer')
  expect(await problems(page)).toEqual([])
})

test('a call that waits calls nobody away from writing, and goes with the answer', async ({ page, slow }) => {
  const studio = await slowly(page, slow)
  const asks = (index: number, id: string, args: object) =>
    step(index, 'tool', 'asks', { about: 'shell: waits', detail: { tool: 'shell', arguments: args, approval_id: id } })
  await studio.input.fill('meanwhile')
  slow.tell({ odo: { id: 'odo-1', route: 'code', steps: [asks(0, 'a-0', { command: 'rm \u202e x' }), asks(1, 'a-1', { command: 'ls' })] } })
  const cards = page.getByRole('group', { name: 'May shell be run?' })
  await expect(cards).toHaveCount(2)
  await expect(page.getByRole('status').filter({ hasText: 'May shell be run?' })).toBeAttached()
  await expect(studio.input).toBeFocused()
  await expect(cards.first().locator('pre')).toHaveText('rm \\u202e x')
  await cards.first().getByRole('button', { name: 'Deny' }).click()
  await expect.poll(() => slow.approvals).toEqual([{ id: 'a-0', allow: false }])
  await expect(cards.first().getByRole('button', { name: 'Allow' })).toBeDisabled()
  await expect(cards.last()).toBeFocused()
  slow.tell({ odo: { steps: [step(0, 'tool', 'skipped', { about: 'shell: the user did not allow this call' })] } })
  await expect(cards).toHaveCount(1)
  await studio.button('Stop').click()
  await studio.settled()
  await expect(cards).toHaveCount(0)
  await expect(studio.input).toHaveValue('meanwhile') // which a click on Stop does not send
  await expect.poll(() => slow.hasLeft).toBe(true)
  await page.reload()
  await expect(studio.answers.locator('.run')).toBeVisible()
  await expect(cards).toHaveCount(0)
})

test('sources of steps and annotations are listed once, numbered, and only pages are links', async ({ page, slow }) => {
  const studio = await slowly(page, slow)
  const sources = [
    { title: 'A page', url: 'https://example.org/a', snippet: 'What it <b>says</b>' },
    { n: 7, document: 'notes.txt', snippet: 'From a file' },
    { title: 'Trap', url: 'javascript:document.title=1' },
  ]
  const detail = { tool: 'web_search', arguments: { query: 'x' }, result: '…', detail: { sources } }
  slow.tell({ odo: { id: 'odo-1', route: 'research', steps: [step(0, 'tool', 'done', { about: 'web_search', detail })] } })
  slow.write({ content: 'As they say [1].' })
  const page2 = { type: 'url_citation', url_citation: { title: 'Another', url: 'https://example.org/b' } }
  const again = { type: 'url_citation', url: 'https://example.org/a', title: 'A page' }
  const file = { type: 'file_citation', file_citation: { file_id: 'file-1', filename: 'report.pdf' } }
  slow.tell({}, { annotations: [again, page2, file, { type: 'other' }, null] })
  slow.end()
  await studio.settled()
  const cited = studio.answers.getByRole('region', { name: 'Sources' })
  const check = async () => {
    await expect(cited.getByRole('listitem')).toHaveText([/^A pageWhat it <b>says<\/b>$/, /^notes.txt/, 'Trap', 'Another', 'report.pdf'])
    await expect(cited.getByRole('listitem').nth(1)).toHaveAttribute('value', '7') // as the answer counts
    await expect(cited.getByRole('link')).toHaveText(['A page', 'Another'])
  }
  await check()
  await expect(cited.getByRole('link').first()).toHaveAttribute('rel', /noopener noreferrer/)
  await looksRight(page, 'sources')
  await page.reload()
  await check()
})
