// The status screen on the real server.
import type { Route } from '@playwright/test'
import { expect, test } from './server'

test('plots move, and the card tells about the model', async ({ studio, page, server }) => {
  await studio.send('Hello')
  await studio.settled()
  await page.getByRole('link', { name: 'Status' }).click()
  await expect(page.getByRole('heading', { name: 'Throughput' })).toBeVisible()
  for (const title of ['Throughput', 'Requests', 'Batch size', 'Cache reuse', 'Memory by purpose']) {
    await expect(page.locator('.plot').filter({ has: page.getByRole('heading', { name: title }) }).locator('canvas')).toBeVisible()
  }
  const canvas = page.locator('.plot .canvas').first()
  const samples = async () => Number(await canvas.getAttribute('data-samples'))
  const before = await samples()
  await expect.poll(samples).toBeGreaterThan(before + 1)
  await expect(page.locator('.card h2')).not.toBeEmpty()
  await expect(page.getByRole('img', { name: /Layers: .*Gated DeltaNet/ })).toBeVisible()
  await expect(page.locator('.formats li').first()).toBeVisible()
  const status = await (await page.request.get(`${server.url}/v1/status`)).json()
  await expect(page.locator('.strip .layer')).toHaveCount(status.model.layers.length)
})

test('a running request is listed, and its button ends it', async ({ studio, page, server }) => {
  // A request that goes on until somebody ends it: 100,000 letters are more than the context holds.
  const grammar = 'root ::= a a a a a a a a a a\n' + [...'abcd'].map((rule, i) => {
    const next = 'bcde'[i]!
    return `${rule} ::= ${Array(10).fill(next).join(' ')}`
  }).join('\n') + '\ne ::= [a-z ]\n'
  const ended = page.evaluate(async (grammar) => {
    const response = await fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({
        messages: [{ role: 'user', content: 'Count.' }],
        stream: true,
        grammar,
        enable_thinking: false,
      }),
    })
    return (await response.text()).length
  }, grammar)
  await page.getByRole('link', { name: 'Status' }).click()
  await page.getByRole('button', { name: /Cancel request/ }).first().click()
  await expect(page.getByText('No request is running.')).toBeVisible()
  expect(await ended).toBeGreaterThan(0)
  expect((await (await page.request.get(`${server.url}/v1/requests`)).json()).data).toEqual([])
})

test('what was guessed is counted by source and place', async ({ studio, page, server }) => {
  const answered = await page.request.post(`${server.url}/v1/completions`, {
    data: { prompt: 'one two three one two three one two three one two', max_tokens: 40, temperature: 0, speculation: 'always' },
  })
  expect(answered.ok()).toBe(true)
  await page.getByRole('link', { name: 'Status' }).click()
  const table = page.getByRole('region', { name: 'Guesses at the next tokens' })
  const { speculation } = await (await page.request.get(`${server.url}/v1/status`)).json()
  expect(speculation.sources.length).toBeGreaterThan(0)
  await expect(page.getByText('accepted of a draft on average')).toBeVisible()
  for (const source of speculation.sources) {
    await expect(table.getByRole('row').filter({ hasText: source.source })).toHaveCount(1)
    const places = source.by_position.map((place: { draft_tokens: number }) => place.draft_tokens)
    expect(places.reduce((a: number, b: number) => a + b, 0)).toBe(source.draft_tokens)
  }
})

test('asks only while it is looked at', async ({ studio, page }) => {
  await page.getByRole('link', { name: 'Status' }).click()
  await expect(page.getByRole('heading', { name: 'Throughput' })).toBeVisible()
  await page.getByRole('link', { name: 'Chat' }).click()
  await expect(studio.input).toBeVisible()
  // Whatever was under way has arrived when the next answer is complete.
  await studio.send('Hello')
  await studio.settled()
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  await studio.send('Hello again')
  await studio.settled()
  expect(asked.filter((path) => path === '/v1/status' || path === '/v1/requests')).toEqual([])
})

test('an idle server shows no rate', async ({ studio, page }) => {
  await studio.send('Write a short story about a robot and a bird.')
  await studio.settled()
  // The server's own rates are means of its last seconds: whoever looks now sees the answer that is over.
  await page.getByRole('link', { name: 'Status' }).click()
  const plot = page.locator('.plot').filter({ has: page.getByRole('heading', { name: 'Throughput' }) })
  await expect(plot).toContainText('0 tok/s')
  const seen: string[] = []
  const samples = async () => Number(await page.locator('.plot .canvas').first().getAttribute('data-samples'))
  const begin = await samples()
  while ((await samples()) < begin + 3) seen.push(await plot.innerText())
  expect(seen.filter((text) => /[1-9][\d.,]* tok\/s/.test(text))).toEqual([])
})

test('on a phone the status is not covered by the settings or the menu', async ({ studio, page }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  await studio.openSettings()
  await page.getByRole('link', { name: 'Status' }).click()
  await expect(page.getByRole('complementary', { name: 'Settings' })).toHaveCount(0)
  const heading = page.getByRole('heading', { name: 'Throughput' })
  await expect(heading).toBeVisible()
  await heading.click() // refused where something lies over it
  await page.getByRole('link', { name: 'Chat' }).click()
  await page.getByRole('button', { name: 'Conversations' }).click()
  await page.getByRole('link', { name: 'Status' }).click()
  await expect(page.locator('.shade')).toHaveCount(0)
  await heading.click()
  // Beside a wide screen the settings may stay.
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.getByRole('link', { name: 'Chat' }).click()
  await studio.openSettings()
  await page.getByRole('link', { name: 'Status' }).click()
  await expect(heading).toBeVisible()
  await expect(page.getByRole('complementary', { name: 'Settings' })).toBeVisible()
})

test('a card is given away and taken again, and a reason why not is said', async ({ studio, page }) => {
  await expect(studio.input).toBeVisible()
  let isSleeping = false
  let refusal = ''
  await page.route('**/v1/status', async (route) => {
    const response = await route.fetch()
    const status = await response.json()
    await route.fulfill({ json: { ...status, is_sleeping: isSleeping, model: { ...status.model, backend: 'cuda' } } })
  })
  const answer = (asleep: boolean) => async (route: Route) => {
    if (refusal) return route.fulfill({ status: 429, json: { error: { message: refusal } } })
    isSleeping = asleep
    await route.fulfill({ json: { is_sleeping: asleep, freed_bytes: asleep ? 1 : 0 } })
  }
  await page.route('**/sleep', answer(true))
  await page.route('**/wake_up', answer(false))
  await page.getByRole('link', { name: 'Status' }).click()
  const card = page.getByRole('region', { name: 'Give the card to other programs' })
  await expect(card.getByRole('status')).toHaveText('The model is on the graphics card.')
  await card.getByRole('button', { name: 'Give the card to other programs' }).click()
  await expect(card.getByRole('status')).toContainText('The model waits in RAM')
  refusal = 'the model sleeps and can not be woken: the card is full'
  await card.getByRole('button', { name: 'Bring it back' }).click()
  await expect(card.getByRole('status')).toHaveText(refusal)
  refusal = ''
  await card.getByRole('button', { name: 'Bring it back' }).click()
  await expect(card.getByRole('status')).toHaveText('The model is on the graphics card.')
})

test('a model on the CPU has no card to give away', async ({ studio, page }) => {
  await expect(studio.input).toBeVisible()
  await page.getByRole('link', { name: 'Status' }).click()
  await expect(page.getByRole('heading', { name: 'Throughput' })).toBeVisible()
  await expect(page.getByRole('button', { name: 'Give the card to other programs' })).toHaveCount(0)
})

test('the axis of time says it as clocks of 24 hours do', async ({ page, server }) => {
  await page.addInitScript(() => {
    const written: string[] = []
    Object.assign(window, { written })
    const fillText = CanvasRenderingContext2D.prototype.fillText
    CanvasRenderingContext2D.prototype.fillText = function (text: string, ...rest) {
      written.push(text)
      return fillText.call(this, text, ...rest)
    }
  })
  await page.goto(`${server.url}/#/status`)
  const times = () =>
    page.evaluate(() => (window as unknown as { written: string[] }).written.filter((text) => /\d:\d\d/.test(text)))
  await expect.poll(async () => (await times()).length).toBeGreaterThan(2)
  for (const text of await times()) expect(text).toMatch(/^([01]\d|2[0-3]):[0-5]\d:[0-5]\d$/)
})
