// Reading while an answer is written, and how much of the context it takes.
import { test as alone, type Page } from '@playwright/test'
import { problems } from './accessibility'
import { answerWith, expect, Server, Studio, test } from './server'

const FOLLOW = 'Follow the answer'
const lines = (from: number, n: number) => Array.from({ length: n }, (_, i) => `Line ${from + i}.\n\n`).join('')
const top = (page: Page) => page.locator('.scroller').evaluate((box) => box.scrollTop)
const toEnd = (page: Page) =>
  page.locator('.scroller').evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight)

for (const width of [1280, 390]) {
  test(`a reader who scrolled up is left alone, and a button leads to the end, ${width} wide`, async ({ page, slow }) => {
    await page.setViewportSize({ width, height: 800 })
    await page.goto(slow.url)
    const studio = new Studio(page)
    await studio.send('Count')
    await expect.poll(() => slow.isAsked).toBe(true)
    slow.write({ content: lines(1, 60) })
    await expect(page.getByText('Line 60.')).toBeInViewport()
    await expect(studio.button(FOLLOW)).toHaveCount(0)

    // A little is enough: ten pixels up, and nothing moves any more.
    await page.locator('.scroller').hover()
    await page.mouse.wheel(0, -10)
    await expect(studio.button(FOLLOW)).toBeVisible()
    const here = await top(page)
    for (let i = 0; i < 5; i++) {
      slow.write({ content: lines(61 + i * 10, 10) })
      await expect(page.getByText(`Line ${70 + i * 10}.`, { exact: true })).toBeAttached()
      expect(await top(page)).toBe(here)
    }
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await problems(page), colorScheme).toEqual([])
    }
    // The button covers neither the composer nor its own way.
    const [button, composer] = [await studio.button(FOLLOW).boundingBox(), await page.locator('.composer').boundingBox()]
    expect(button!.y + button!.height).toBeLessThanOrEqual(composer!.y + 1)
    await studio.button(FOLLOW).focus()
    await page.keyboard.press('Enter')
    await expect(page.getByText('Line 110.')).toBeInViewport()
    await expect(studio.button(FOLLOW)).toHaveCount(0)
    slow.write({ content: lines(111, 30) })
    await expect(page.getByText('Line 140.')).toBeInViewport()

    // Back by hand works as well.
    await page.locator('.scroller').hover()
    await page.mouse.wheel(0, -300)
    await expect(studio.button(FOLLOW)).toBeVisible()
    slow.end()
    await studio.settled()
    await expect(studio.button('To the end')).toBeVisible()
    await page.mouse.wheel(0, 2000)
    await expect(studio.button('To the end')).toHaveCount(0)
    expect(await toEnd(page)).toBeLessThanOrEqual(1)
  })
}

test('whoever sends a message sees it, wherever they were', async ({ studio, page }) => {
  await answerWith(page, [{ content: lines(1, 80) }, { content: 'The second answer.' }])
  await studio.send('First')
  await studio.settled()
  await page.locator('.scroller').evaluate((box) => (box.scrollTop = 0))
  await expect(studio.button('To the end')).toBeVisible()
  await studio.send('Second')
  await studio.settled()
  await expect(page.getByText('The second answer.')).toBeInViewport()
})

test('the meter says what the real server counted, and counts the draft', async ({ studio, page, server }) => {
  const meter = page.getByRole('meter', { name: 'Context' })
  const used = async () => Number(await meter.getAttribute('aria-valuenow'))
  await expect(meter).toHaveCount(0)
  await studio.input.fill('one two three four five')
  await expect(meter).toBeVisible()
  const { count } = await (
    await page.request.post(`${server.url}/tokenize`, { data: { content: 'one two three four five' } })
  ).json()
  await expect.poll(used).toBe(count)
  await studio.input.fill('')
  await expect(meter).toHaveCount(0)

  await studio.send('What is 3 + 4?')
  await studio.settled()
  const speed = await studio.answers.locator('.speed').innerText()
  const total = Number(/(\d+) tokens/.exec(speed)![1]) + Number(/of (\d+) prompt tokens/.exec(speed)![1])
  await expect.poll(used).toBe(total)
  await expect(meter).toHaveAttribute('aria-valuetext', `${total} of 16,384 tokens`)
  const before = await used()
  await studio.input.fill('and a draft of some words')
  await expect.poll(used).toBeGreaterThan(before)
  await page.reload()
  await expect.poll(used).toBeGreaterThan(before)
  await studio.input.fill('')
  await expect.poll(used).toBe(before)
  // A longer system prompt is counted by the server.
  await studio.openSettings()
  await page.getByLabel('System prompt').fill('Be brief. '.repeat(40))
  await expect.poll(used).toBeGreaterThan(before + 40)
})

alone('the meter warns before the context is full, and grows while an answer is written', async ({ page }) => {
  const server = new Server(['--ctx', '512'])
  await server.start()
  try {
    await page.goto(server.url)
    const studio = new Studio(page)
    const meter = page.getByRole('meter', { name: 'Context' })
    await studio.openSettings()
    await studio.choose('Thinking', 'off')
    await page.getByLabel('Longest answer, tokens').fill('30')
    await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
    await studio.input.fill('word '.repeat(200))
    await expect(meter).toBeVisible()
    await expect(page.getByText('The context is nearly full')).toHaveCount(0)
    await studio.button('Send').click()
    await studio.settled()
    await studio.input.fill('word '.repeat(230))
    const warning = page.locator('.meter .warning')
    await expect(warning).toHaveText(/The context is nearly full: \d+ tokens are left\./)
    await page.setViewportSize({ width: 390, height: 844 })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await problems(page), colorScheme).toEqual([])
    }
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)
  } finally {
    await server.stop()
  }
})

test('a server without a tokenizer shows what the usage says', async ({ studio, page }) => {
  await page.route('**/tokenize', (route) => route.fulfill({ status: 404, json: { error: { message: 'no such path' } } }))
  await answerWith(page, [{ content: 'ok' }])
  await studio.send('Hello')
  await studio.settled()
  await expect(page.getByRole('meter', { name: 'Context' })).toHaveAttribute('aria-valuenow', '30')
})

test('while a long prompt is read the page says how much of it is', async ({ page, slow }) => {
  await page.goto(slow.url)
  const studio = new Studio(page)
  const asked = page.waitForRequest('**/v1/chat/completions')
  await studio.send('Hello')
  expect((await asked).postDataJSON().return_progress).toBe(true)
  await expect.poll(() => slow.isAsked).toBe(true)
  const bar = studio.answers.getByRole('progressbar')
  for (const [read, percent] of [[0, 0], [4_096, 41], [9_000, 90]] as const) {
    slow.progress(10_000, read)
    await expect(bar).toHaveAccessibleName(`Reading the prompt: ${percent} %`)
    await expect(studio.answers).toContainText(`Reading the prompt: ${percent} %`)
  }
  slow.progress(10_000, 10_000)
  await expect(bar).toHaveCount(0)
  slow.write({ content: 'Here I am.' })
  await expect(studio.answers).toContainText('Here I am.')
  slow.end()
  await studio.settled()
})
