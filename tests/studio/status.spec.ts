// The status screen on the real server.
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
