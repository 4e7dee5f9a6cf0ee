// The empty page: what it says about the model in the box, and that what it offers to ask is answered rightly.
import { problems } from './accessibility'
import { expect, test } from './server'

// A rule for every example that is offered with the model in the box: does this answer it?
const RULES: Record<string, (answer: string) => boolean> = {
  'Write a short story about a robot.': (answer) => /\brobot\b/.test(answer) && answer.split(/[.!?]["”]?\s/).length >= 6,
  'Tom has 12 apples and buys 9 more. How many apples does he have?': (answer) => /\b21\b/.test(answer),
  'What is the capital of Japan?': (answer) => /\bTokyo\b/.test(answer),
  'Write a Python function that adds two numbers.': (answer) =>
    /```python\ndef \w+\((\w+), (\w+)\):\n\s+return \1 \+ \2\n[\s\S]*```/.test(answer),
}
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8]

test('every example that is offered is answered rightly, whatever the seed', async ({ studio, page, server }) => {
  test.setTimeout(600_000)
  await expect(page.locator('.examples button').first()).toBeVisible()
  const offered = await page.locator('.examples button').allInnerTexts()
  expect(offered.length).toBeGreaterThanOrEqual(3)
  expect(Object.keys(RULES).sort()).toEqual([...offered].sort())
  // What the page itself asks for, with its settings as they are on the first visit.
  const asked = page.waitForRequest('**/v1/chat/completions')
  await page.getByRole('button', { name: offered[0]!, exact: true }).click()
  const { stream, stream_options, messages, ...settings } = (await asked).postDataJSON()
  await studio.settled()
  expect(messages).toEqual([{ role: 'user', content: offered[0] }])
  const wrong: string[] = []
  for (const content of offered) {
    for (const seed of SEEDS) {
      const data = { ...settings, messages: [{ role: 'user', content }], seed }
      const response = await page.request.post(`${server.url}/v1/chat/completions`, { data, timeout: 120_000 })
      const answer: string = (await response.json()).choices[0].message.content
      if (!RULES[content]!(answer)) wrong.push(`${content} (${seed}): ${answer}`)
    }
  }
  expect(wrong).toEqual([])
})

test('the empty page says what the model in the box is, and which others fit', async ({ studio, page }) => {
  const empty = page.locator('.empty')
  await expect(empty).toContainText('demonstration model of 23.8 M parameters')
  await expect(empty).toContainText('GGUF')
  await empty.getByRole('link', { name: 'Which models fit which memory' }).click()
  const guide = page.getByRole('main', { name: 'Choosing a model' })
  await expect(guide.getByRole('heading', { name: 'Choosing a model' })).toBeVisible()
  await expect(guide.getByRole('heading', { name: '16 GB' })).toBeVisible()
  for (const name of ['Qwen/Qwen3.5-35B-A3B', 'nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B', 'openai/gpt-oss-20b']) {
    await expect(guide.getByRole('cell', { name, exact: true }).first()).toBeVisible()
  }
  expect(await problems(page), 'guide').toEqual([])
  await page.setViewportSize({ width: 360, height: 740 })
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)
  await page.goBack()
  await expect(studio.input).toBeVisible()
})

test('another model gets general examples, and no word about the one in the box', async ({ page, server }) => {
  await page.route('**/v1/models', (route) =>
    route.fulfill({ json: { object: 'list', data: [{ id: 'Qwen3-8B', context_length: 40960, capabilities: ['chat'] }] } }),
  )
  await page.goto(server.url)
  await expect(page.locator('.model-name')).toHaveText('Qwen3-8B')
  await expect(page.locator('.examples button')).toHaveCount(3)
  await expect(page.locator('.empty')).not.toContainText('demonstration model')
  const offered = await page.locator('.examples button').allInnerTexts()
  expect(offered.filter((text) => text in RULES)).toEqual([])
})
