// Accessibility of every screen in both themes and at phone width, and the size of the page.
import { gzipSync } from 'node:zlib'
import { problems } from './accessibility'
import { answerWith, expect, test } from './server'
import { sampleAnswer } from './sample'

const SIZES = [
  { name: 'desktop', width: 1280, height: 800 },
  { name: 'phone', width: 390, height: 844 },
]

for (const theme of ['light', 'dark'] as const) {
  for (const { name, width, height } of SIZES) {
    test(`no serious accessibility problem, ${theme}, ${name}`, async ({ studio, page }) => {
      await page.emulateMedia({ colorScheme: theme })
      await page.setViewportSize({ width, height })
      await expect(page.locator('html')).toHaveAttribute('data-theme', theme)
      expect(await problems(page), 'empty chat').toEqual([])

      const call = { id: 'c1', name: 'weather', arguments: '{"city": "Paris"}' }
      await answerWith(page, [{ reasoning: 'A *thought*.', content: sampleAnswer, toolCalls: [call] }])
      await studio.send('Show everything')
      await studio.settled()
      await page.getByRole('button', { name: /Thought for/ }).click()
      await expect(page.locator('.hljs-keyword').first()).toBeVisible()
      expect(await problems(page), 'answer').toEqual([])

      await page.getByRole('button', { name: 'Preview' }).first().click()
      await expect(page.locator('.artefact')).toBeVisible()
      expect(await problems(page), 'artefact').toEqual([])
      await page.keyboard.press('Escape')

      await studio.openSettings()
      await page.getByLabel('Tools (JSON)').fill('[')
      expect(await problems(page), 'settings').toEqual([])
      await page.getByRole('button', { name: 'Delete all conversations' }).click()
      await expect(page.getByRole('dialog')).toBeVisible()
      expect(await problems(page), 'dialog').toEqual([])
      await page.keyboard.press('Escape')
      await page.locator('.panel').getByRole('button', { name: 'Close' }).click()

      if (name === 'phone') await page.getByRole('button', { name: 'Conversations' }).click()
      expect(await problems(page), 'conversations').toEqual([])
      await page.getByRole('button', { name: /^Delete/ }).first().click()
      await page.getByRole('button', { name: 'Undo' }).hover()
      expect(await problems(page), 'notice').toEqual([])
      await page.getByRole('button', { name: 'Undo' }).click()
      if (name === 'phone') await page.getByRole('button', { name: 'Conversations' }).click()

      await page.getByRole('link', { name: 'Status' }).click()
      await expect(page.locator('.plot canvas').last()).toBeVisible()
      expect(await problems(page), 'status').toEqual([])

      await page.route('**/v1/*', (route) => route.abort())
      await expect(page.getByRole('alert').locator('p')).toBeVisible()
      expect(await problems(page), 'offline').toEqual([])
    })
  }
}

test('the theme can be chosen', async ({ studio, page }) => {
  await studio.openSettings()
  await studio.choose('Theme', 'dark')
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark')
  await page.reload()
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark')
})

test('nothing is wider than a phone', async ({ studio, page }) => {
  await page.setViewportSize({ width: 360, height: 740 })
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
  expect(await overflow()).toBeLessThanOrEqual(0)
  await answerWith(page, [{ content: sampleAnswer + '\n\n' + 'word'.repeat(200) }])
  await studio.send('x'.repeat(300))
  await studio.settled()
  expect(await overflow()).toBeLessThanOrEqual(0)
  await page.getByRole('link', { name: 'Status' }).click()
  await expect(page.locator('.plot canvas').last()).toBeVisible()
  expect(await overflow()).toBeLessThanOrEqual(0)
})

test('the page is at most 350 KB compressed, all of it', async ({ page, server }) => {
  const wanted = new Set([
    '/',
    '/studio/frame.html',
    '/studio/icon.svg',
    '/studio/icon-maskable.svg',
    '/studio/manifest.webmanifest',
    '/studio/sw.js',
  ])
  const done = new Set<string>()
  let total = 0
  while (done.size < wanted.size) {
    for (const path of [...wanted]) {
      if (done.has(path)) continue
      done.add(path)
      const response = await page.request.get(server.url + path, { headers: { 'Accept-Encoding': 'gzip' } })
      expect(response.status(), path).toBe(200)
      const text = await response.text()
      total += gzipSync(text, { level: 9 }).length
      for (const [, name] of text.matchAll(/["'(](?:\/studio\/|\.\/|)?((?:assets\/)?[\w-]+\.(?:js|css))["')]/g)) {
        if (name !== 'sw.js') wanted.add(`/studio/assets/${name!.replace('assets/', '')}`)
      }
    }
  }
  console.log(`${done.size} files, ${total} bytes compressed`)
  // Script, styles, colours and plots: less would mean that files were not found.
  expect(done.size).toBeGreaterThanOrEqual(8)
  expect(total).toBeLessThanOrEqual(350_000)
})

test('what an answer cost begins every line with a word, however narrow the page is', async ({ studio, page }) => {
  await studio.send('What is 3 + 4?')
  await studio.settled()
  for (const width of [1280, 390, 320]) {
    await page.setViewportSize({ width, height: 800 })
    const lines = await page.locator('.speed').evaluate((list) => {
      const shown = list.getBoundingClientRect().left + parseFloat(getComputedStyle(list).clipPath.split(' ').at(-1)!)
      const firsts = new Map<number, number>() // by line, where its first word begins
      for (const item of list.children) {
        const range = document.createRange()
        range.selectNodeContents(item)
        const { left } = range.getClientRects()[0]!
        const line = Math.round(item.getBoundingClientRect().top)
        firsts.set(line, Math.min(left, firsts.get(line) ?? Infinity))
      }
      return [...firsts.values()].map((left) => left - shown)
    })
    if (width < 400) expect(lines.length).toBeGreaterThan(1)
    for (const indent of lines) expect(Math.abs(indent), `at ${width}`).toBeLessThan(1)
  }
})
