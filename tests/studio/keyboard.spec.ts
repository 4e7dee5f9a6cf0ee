// The keyboard alone and a screen reader's tree reach everything: on each screen the Tab key comes to every control, each
// of them shows that it has the focus, and each has a name.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as alone, type Page } from '@playwright/test'
import { answerWith, expect, Server, Studio, test } from './server'

// What can be worked with, but for what only a script focuses and what the arrow keys reach within a group.
const CONTROLS = 'a[href], button, input, select, textarea, summary, [tabindex="0"], [role=button], [role=checkbox]'

// Marks the controls that people see now; what they are, in words.
const controls = (page: Page, within: string) =>
  page.evaluate(
    ([all, root]) => {
      document.querySelectorAll('[data-control]').forEach((element) => element.removeAttribute('data-control'))
      const found: string[] = []
      for (const element of document.querySelector(root!)!.querySelectorAll<HTMLElement>(all!)) {
        const isOff = element.matches(':disabled, [tabindex="-1"], .skip') || element.closest('[inert]')
        if (isOff || !element.checkVisibility({ visibilityProperty: true }) || !element.getClientRects().length) continue
        element.dataset.control = String(found.length)
        const words = element.getAttribute('aria-label') ?? element.textContent!.trim().slice(0, 60)
        found.push(`${element.tagName.toLowerCase()} ${words || element.outerHTML.slice(0, 120)}`)
      }
      return found
    },
    [CONTROLS, within],
  )

// Presses Tab from the top of the page until the focus has gone round; what it came to, and what did not show it.
async function walk(page: Page, n: number) {
  const reached = new Set<number>()
  const unseen: string[] = []
  await page.evaluate(() => {
    ;(document.activeElement as HTMLElement | null)?.blur()
    getSelection()?.removeAllRanges()
  })
  for (let i = 0; i < 3 * n + 40; i++) {
    await page.keyboard.press('Tab')
    const here = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement
      // The line of the composer has the ring for the field in it.
      const ring = element.closest('.composer .line') && element.matches('textarea') ? element.closest('.line')! : element
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(ring)
      const box = element.getBoundingClientRect()
      return {
        at: element.dataset.control,
        isSeen: (outlineStyle !== 'none' && outlineWidth !== '0px') || boxShadow !== 'none',
        isOnScreen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
        what: element.outerHTML.slice(0, 120),
      }
    })
    if (here.at === undefined) continue
    if (!here.isSeen || !here.isOnScreen) unseen.push(here.what)
    reached.add(Number(here.at))
    if (reached.size === n) break
  }
  return { reached, unseen: [...new Set(unseen)] }
}

// In the tree of a screen reader each control has a name of its own.
const NAMELESS =
  /^\s*- (?:button|link|textbox|searchbox|combobox|checkbox|switch|spinbutton|radio|slider|meter|progressbar|region|dialog)(?: \[[^\]]*\])*:?\s*$/

export async function reachesAll(page: Page, screen: string, within = 'body') {
  const all = await controls(page, within)
  const { reached, unseen } = await walk(page, all.length)
  // Some go while the focus wanders: the way to the end, once it is in sight.
  const isThere = await page.evaluate(
    (n) => Array.from({ length: n }, (_, i) => !!document.querySelector(`[data-control="${i}"]`)?.checkVisibility()),
    all.length,
  )
  expect.soft(all.filter((_, i) => !reached.has(i) && isThere[i]), `${screen}: the Tab key does not come to`).toEqual([])
  expect.soft(unseen, `${screen}: the focus is not to be seen on`).toEqual([])
  const tree = await page.locator(within).ariaSnapshot()
  expect.soft(tree.split('\n').filter((line) => NAMELESS.test(line)), `${screen}: without a name`).toEqual([])
  // One heading of the first rank or more, and places to jump to.
  if (within === 'body') {
    for (const place of ['banner', 'main']) expect(tree, `${screen}: no ${place}`).toMatch(new RegExp(`- ${place}\\b`))
  }
}

alone('every screen', async ({ page }) => {
  alone.setTimeout(400_000)
  const folder = mkdtempSync(join(tmpdir(), 'chimere-keyboard-'))
  const home = { hasDiskCache: false, env: { CHIMERE_HOME: folder } }
  const server = new Server(['--engram', join(folder), '--learn', 'on'], home)
  await server.start()
  try {
    await page.goto(server.url)
    const studio = new Studio(page)
    await reachesAll(page, 'an empty chat')
    await answerWith(page, [
      {
        reasoning: 'Hm',
        content: 'A [link](https://example.org), `code`:\n\n```python\nprint(1)\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |',
        certainty: ['<think>', 'Hm', '</think>', 'A'],
        others: { A: ['B'] },
      },
      { content: 'I call.', toolCalls: [{ id: 'c', name: 'get_weather', arguments: '{"city":"Rome"}' }] },
    ])
    for (const question of ['First', 'Second']) {
      await studio.send(question)
      await studio.settled()
    }
    await page.getByRole('button', { name: /Thought for/ }).click()
    await page.locator('.heat summary').click()
    await reachesAll(page, 'a chat')
    await studio.openSettings()
    await page.getByRole('textbox', { name: 'Name of a preset' }).fill('mine')
    await page.keyboard.press('Enter')
    await reachesAll(page, 'the settings')
    await page.keyboard.press('Escape')
    await page.unroute('**/v1/chat/completions')

    await page.getByRole('link', { name: 'Memory', exact: true }).click()
    await page.getByLabel('Teach something').fill('The capital of Zubrovia is Lutzhaven.')
    await page.getByRole('main').getByRole('button', { name: 'Learn' }).click()
    await expect(page.locator('.note')).toHaveCount(1)
    await page.locator('.notice').getByRole('button', { name: 'Close' }).click()
    await reachesAll(page, 'memory')
    await page.goto(`${server.url}/#/improve`)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await reachesAll(page, 'what was learned')

    await page.getByRole('link', { name: 'Files', exact: true }).click()
    await page.getByLabel('Name of a new collection').fill('handbook')
    await page.keyboard.press('Enter')
    await expect(page.getByRole('heading', { name: 'handbook' })).toBeVisible()
    await reachesAll(page, 'a collection')
    await page.getByRole('link', { name: 'All collections' }).click()
    await reachesAll(page, 'files')
    await page.getByRole('link', { name: 'Orchestrator' }).click()
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await reachesAll(page, 'the orchestrator')
    await page.getByRole('link', { name: 'Status' }).click()
    await expect(page.getByRole('heading', { name: 'Throughput' })).toBeVisible()
    await reachesAll(page, 'status')
    await page.goto(`${server.url}/#/models`)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await reachesAll(page, 'the guide')
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('on a phone the menu and the settings', async ({ studio, page }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  await reachesAll(page, 'a chat on a phone')
  await page.getByRole('button', { name: 'Conversations' }).click()
  await reachesAll(page, 'the menu', '#sidebar')
  await page.keyboard.press('Escape')
  await studio.openSettings()
  await reachesAll(page, 'the settings on a phone', '#settings')
})

alone('a question for the key, and one that deletes', async ({ page }) => {
  const server = new Server(['--api-key', 'secret'])
  await server.start()
  try {
    await page.goto(server.url)
    await expect(page.getByRole('dialog')).toBeVisible()
    await reachesAll(page, 'the question for the key', 'dialog')
    // Without a mouse: the field has the focus, and Enter answers.
    await page.getByLabel('API key', { exact: false }).fill('secret')
    await page.keyboard.press('Enter')
    await expect(page.getByRole('dialog')).toHaveCount(0)
    await answerWith(page, [{ content: 'ok' }])
    const studio = new Studio(page)
    await studio.send('One')
    await studio.settled()
    await studio.openSettings()
    await page.getByRole('button', { name: 'Delete all conversations' }).focus()
    await page.keyboard.press('Enter')
    await expect(page.getByRole('dialog')).toBeVisible()
    await reachesAll(page, 'the question before deleting', 'dialog')
    await page.keyboard.press('Escape')
    await expect(page.getByRole('dialog')).toHaveCount(0)
    await expect(page.getByRole('button', { name: 'Delete all conversations' })).toBeFocused()
  } finally {
    await server.stop()
  }
})
