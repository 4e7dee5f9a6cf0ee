// What else the model might have written, and going on from there.
import type { Page } from '@playwright/test'
import { problems } from './accessibility'
import { answerWith, expect, test, type Studio } from './server'

async function showStrip(studio: Studio) {
  await studio.openSettings()
  await studio.page.getByLabel('Certainty of each token').selectOption('on')
  await studio.page.locator('.panel').getByRole('button', { name: 'Close' }).click()
}

const token = (page: Page, at: number) => page.locator(`.heat [data-at="${at}"]`)
const others = (page: Page) => page.getByRole('dialog', { name: 'Other tokens at this place' })

test('the real model goes on from a token that was chosen, as a variant', async ({ studio, page }) => {
  await showStrip(studio)
  const first = page.waitForRequest('**/v1/chat/completions')
  await studio.send('What is the capital of Japan?')
  expect((await first).postDataJSON()).toMatchObject({ token_stats: true, logprobs: true, top_logprobs: 8 })
  await studio.settled()
  const answer = await studio.answers.locator('.markdown').innerText()
  await studio.answers.locator('.heat summary').click()
  // The first token of the answer that is text and comes after the thought.
  const at = await page.locator('.heat [data-at]').evaluateAll((all, start) => {
    const end = all.findIndex((element) => element.textContent === 'end of thinking')
    return all.findIndex((element, i) => i > end && !!element.textContent!.trim() && start.startsWith(element.textContent!))
  }, answer)
  await token(page, at).click()
  await expect(others(page)).toBeVisible()
  const choices = others(page).getByRole('button')
  await expect(choices).toHaveCount(8)
  await expect(others(page).locator('[aria-current]')).toHaveCount(1)
  await expect(others(page).locator('[aria-current]')).toContainText('%')
  const chosen = others(page).locator('button:enabled').first()
  const text = (await chosen.locator('.mono').innerText()).replace(/␣/g, ' ').replace(/↵/g, '\n')
  const second = page.waitForRequest('**/v1/chat/completions')
  await chosen.click()
  expect((await second).postDataJSON().messages.at(-1)).toMatchObject({ role: 'assistant', content: text })
  await studio.settled()
  await expect(studio.answers.locator('.markdown')).toContainText(text.trim())
  await expect(page.locator('.variants')).toHaveText('2 / 2')
  // The strip is open still, and shows what was chosen; the thought is that of the first answer.
  await expect(page.locator('.heat .chosen')).toHaveText(text)
  await expect(page.locator('.heat .chosen')).toHaveAttribute('title', /chosen by you$/)
  await studio.button('Earlier version').click()
  await expect(studio.answers.locator('.markdown')).toHaveText(answer)
})

test('works with the keyboard, and can be read in both themes', async ({ studio, page }) => {
  const bodies = await answerWith(page, [
    {
      reasoning: 'Hm',
      content: 'I like tea.',
      certainty: ['<think>', 'Hm', '</think>', '\n\n', 'I', ' like', ' tea', '.', '<|im_end|>'],
      others: { ' tea': [' coffee', ' water', '<|im_end|>'], Hm: ['Ha'] },
    },
    { content: ' with milk.' },
  ])
  await showStrip(studio)
  await studio.send('What do you like?')
  await studio.settled()
  await page.locator('.heat summary').focus()
  await page.keyboard.press('Enter')
  await expect(token(page, 0)).toBeVisible()
  await page.keyboard.press('Tab')
  await expect(token(page, 0)).toBeFocused()
  for (let i = 0; i < 6; i++) await page.keyboard.press('ArrowRight')
  await expect(token(page, 6)).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(others(page).getByRole('button')).toHaveText([/␣tea.*50 %/, /␣coffee.*25 %/, /␣water.*16.7 %/, /im end.*12.5 %/])
  await expect(others(page).getByRole('button').nth(0)).toBeDisabled()
  await expect(others(page).getByRole('button').nth(3)).toBeDisabled() // that is no text
  await expect(others(page).getByRole('button').nth(1)).toBeFocused()
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(await problems(page), colorScheme).toEqual([])
  }
  await page.keyboard.press('Escape')
  await expect(others(page)).toHaveCount(0)
  await expect(token(page, 6)).toBeFocused()

  // What opens the thought is no text.
  await token(page, 0).click()
  await expect(others(page)).toContainText('The answer cannot go on from here.')
  await expect(others(page).locator('button:enabled')).toHaveCount(0)
  await page.keyboard.press('Escape')

  await token(page, 6).click()
  await expect(others(page).getByRole('button').nth(1)).toBeFocused()
  await page.keyboard.press('ArrowDown')
  await expect(others(page).getByRole('button').nth(2)).toBeFocused()
  await page.keyboard.press('Enter')
  await studio.settled()
  expect(bodies[1]!.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'I like water' })
  await expect(studio.answers.locator('.markdown')).toHaveText('I like water with milk.')
  await expect(page.locator('.heat summary')).toBeFocused()
  await page.reload()
  await expect(studio.answers.locator('.markdown')).toHaveText('I like water with milk.')
  await studio.button('Earlier version').click()
  await expect(studio.answers.locator('.markdown')).toHaveText('I like tea.')
})

test('inside a thought another token can be chosen, and the thought goes on from there', async ({ studio, page }) => {
  const bodies = await answerWith(page, [
    {
      reasoning: 'Tea or coffee.',
      content: 'Tea.',
      certainty: ['<think>', '\n', 'Tea', ' or', ' coffee', '.', '\n', '</think>', '\n\n', 'Tea', '.', '<|im_end|>'],
      others: { ' coffee': [' milk'], '.': ['!'] },
    },
    { reasoning: ' is best.', content: 'Milk.', certainty: [' is', ' best', '.', '</think>', 'Milk', '.'], others: { ' best': [' good'] } },
    { reasoning: ' too.', content: 'Both.' },
  ])
  await showStrip(studio)
  await studio.send('What do you like?')
  await studio.settled()
  await page.locator('.heat summary').click()
  await token(page, 4).click()
  await expect(others(page)).toContainText('Choose another, and the answer goes on from there.')
  await others(page).getByRole('button', { name: 'milk' }).click()
  await studio.settled()
  expect(bodies[1]!.messages.at(-1)).toEqual({ role: 'assistant', content: '', reasoning_content: 'Tea or milk' })
  await expect(studio.answers.locator('.markdown')).toHaveText('Milk.')
  await studio.button(/Thought for/).click()
  await expect(studio.answers.locator('.thinking .markdown')).toHaveText('Tea or milk is best.')
  await expect(page.locator('.variants')).toHaveText('2 / 2')
  // The tokens of both parts belong to one thought.
  await token(page, 6).click()
  await others(page).getByRole('button', { name: 'good' }).click()
  await studio.settled()
  expect(bodies[2]!.messages.at(-1)).toEqual({ role: 'assistant', content: '', reasoning_content: 'Tea or milk is good' })
  await expect(studio.answers.locator('.markdown').last()).toHaveText('Both.')
})

test('a letter of several tokens is not cut in two', async ({ studio, page }) => {
  await answerWith(page, [
    {
      content: 'Hi 🙂!',
      certainty: ['Hi', ' \ufffd', '\ufffd\ufffd', '!'],
      bytes: { ' \ufffd': [32, 0xf0, 0x9f], '\ufffd\ufffd': [0x99, 0x82] },
      others: { ' \ufffd': [' there'], '\ufffd\ufffd': ['x'], '!': ['?'] },
    },
    { content: ' Bye.' },
  ])
  await showStrip(studio)
  await studio.send('Greet me')
  await studio.settled()
  await page.locator('.heat summary').click()
  await token(page, 2).click()
  await expect(others(page)).toContainText('The answer cannot go on from here.')
  await page.keyboard.press('Escape')
  await token(page, 3).click()
  await others(page).getByRole('button', { name: '?' }).click()
  await studio.settled()
  await expect(studio.answers.locator('.markdown')).toHaveText('Hi 🙂? Bye.')
})

test('on a phone the choices stay on the screen', async ({ studio, page }) => {
  await page.setViewportSize({ width: 360, height: 740 })
  const words = Array.from({ length: 40 }, (_, i) => ` word${i}`)
  await answerWith(page, [
    { content: words.join('').trim(), certainty: words, others: Object.fromEntries(words.map((w) => [w, [' other']])) },
  ])
  await showStrip(studio)
  await studio.send('Words')
  await studio.settled()
  await page.locator('.heat summary').click()
  for (const at of [3, 17, 39]) {
    await token(page, at).click()
    const box = (await others(page).boundingBox())!
    expect(box.x).toBeGreaterThanOrEqual(0)
    expect(box.x + box.width).toBeLessThanOrEqual(360)
    await expect(others(page).getByRole('button').last()).toBeInViewport()
    await page.keyboard.press('Escape')
  }
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)
})
