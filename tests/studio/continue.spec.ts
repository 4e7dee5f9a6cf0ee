// Answers that broke off go on, and what was deleted comes back.
import { answerWith, expect, Studio, test } from './server'

test('an answer that was stopped goes on where it was', async ({ page, slow }) => {
  await page.goto(slow.url)
  const studio = new Studio(page)
  await studio.send('Write a story')
  await expect.poll(() => slow.isAsked).toBe(true)
  slow.write({ content: 'Once upon a time' })
  await expect(studio.answers).toContainText('Once upon a time')
  await studio.button('Stop').click()
  await studio.settled()
  const asked = page.waitForRequest('**/v1/chat/completions')
  await studio.button('Continue').click()
  expect((await asked).postDataJSON().messages).toEqual([
    { role: 'user', content: 'Write a story' },
    { role: 'assistant', content: 'Once upon a time' },
  ])
  // What there was stays on the screen while the rest comes.
  await expect(studio.answers).toHaveAttribute('aria-busy', 'true')
  await expect(studio.answers).toContainText('Once upon a time')
  slow.write({ content: ' there was a robot.' })
  await expect(studio.answers).toContainText('Once upon a time there was a robot.')
  slow.end()
  await studio.settled()
  await expect(studio.answers).toHaveCount(1)
  await expect(studio.button('Continue')).toHaveCount(0)
  await expect(page.locator('.variants')).toHaveCount(0)
  await page.reload()
  await expect(studio.answers).toContainText('Once upon a time there was a robot.')
})

test('an answer of the real model that ended by length goes on, as often as it takes', async ({ studio, page }) => {
  await studio.openSettings()
  await studio.choose('Thinking', 'off')
  await page.getByLabel('Temperature').fill('0')
  await studio.send('Write a short story about a robot.')
  await studio.settled()
  const whole = (await studio.answers.locator('.markdown').innerText()).replace(/\s+/g, ' ')
  await studio.button('New conversation').click()
  await page.getByLabel('Longest answer, tokens').fill('20')
  await studio.send('Write a short story about a robot.')
  await studio.settled()
  await expect(studio.answers).toContainText('The answer reached its limit of tokens.')
  const first = (await studio.answers.locator('.markdown').innerText()).replace(/\s+/g, ' ')
  expect(whole.startsWith(first)).toBe(true)
  await studio.button('Continue').click()
  await studio.settled()
  const second = (await studio.answers.locator('.markdown').innerText()).replace(/\s+/g, ' ')
  expect(second.length).toBeGreaterThan(first.length)
  expect(second.startsWith(first)).toBe(true)
  await expect(studio.answers.locator('.speed')).toContainText('40 tokens')
})

test('an earlier answer, one with a call and a thought alone cannot go on', async ({ studio, page }) => {
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
  const bodies = [chunk({ content: 'cut' }), chunk({ reasoning_content: 'only a thou' })]
  await page.route('**/v1/chat/completions', (route) =>
    route.fulfill({ contentType: 'text/event-stream', body: bodies.shift()! + chunk({}, 'length') + 'data: [DONE]\n\n' }),
  )
  await studio.send('One')
  await studio.settled()
  await expect(studio.button('Continue')).toHaveCount(1)
  await studio.send('Two')
  await studio.settled()
  await expect(studio.answers.last()).toContainText('The answer reached its limit of tokens.')
  await expect(studio.button('Continue')).toHaveCount(0)
})

test('a deleted conversation comes back with Undo, whole and in its place', async ({ studio, page }) => {
  await answerWith(page, [{ content: 'first answer' }, { content: 'second answer' }])
  const list = page.getByRole('navigation', { name: 'Conversations' })
  await studio.send('First')
  await studio.settled()
  await studio.button('New conversation').click()
  await studio.send('Second')
  await studio.settled()
  await studio.input.fill('a draft of the second')
  await studio.button('Delete “Second”').focus()
  await page.keyboard.press('Enter')
  await expect(list).not.toContainText('Second')
  await expect(studio.answers).toHaveText(/first answer/)
  // The keyboard is where the next conversation goes on, and the way back is announced.
  await expect(studio.input).toBeFocused()
  await expect(page.getByRole('status').filter({ hasText: '“Second” was deleted.' })).toBeVisible()
  await studio.button('Undo').click()
  await expect(studio.answers).toHaveText(/second answer/)
  await expect(studio.input).toHaveValue('a draft of the second')
  await expect(list.locator('.entry')).toHaveText(['Second', 'First'])
  await expect(studio.button('Undo')).toHaveCount(0)
  await page.reload()
  await expect(list.locator('.entry')).toHaveText(['Second', 'First'])
  await expect(studio.answers).toHaveText(/second answer/)

  // Not undone, it is gone for good. The keyboard is still in the list: the open conversation is another one.
  await studio.button('Delete “First”').focus()
  await page.keyboard.press('Enter')
  await expect(list).not.toContainText('First')
  await expect(studio.button('Delete “Second”')).toBeFocused()
  await page.reload()
  await expect(list.locator('.entry')).toHaveText(['Second'])
})

test('a conversation deleted while it is being written stops, and comes back with what there was', async ({ page, slow }) => {
  await page.goto(slow.url)
  const studio = new Studio(page)
  await studio.send('A long one')
  await expect.poll(() => slow.isAsked).toBe(true)
  slow.write({ content: 'So far so good' })
  await expect(studio.answers).toContainText('So far so good')
  await studio.button('Delete “A long one”').click()
  await expect.poll(() => slow.hasLeft).toBe(true)
  await expect(studio.answers).toHaveCount(0)
  await studio.button('Undo').click()
  await expect(studio.answers).toContainText('So far so good')
  await expect(studio.answers).toContainText('Stopped.')
  await expect(studio.button('Continue')).toBeEnabled()
})

test('Undo waits for a hand that is on it', async ({ studio, page }) => {
  await page.clock.install()
  await answerWith(page, [{ content: 'ok' }])
  await studio.send('Short lived')
  await studio.settled()
  await studio.button('Delete “Short lived”').click()
  await studio.button('Undo').hover()
  await page.clock.runFor(60_000)
  await expect(studio.button('Undo')).toBeVisible()
  await studio.input.hover()
  await page.clock.runFor(3_000)
  await expect(studio.button('Undo')).toHaveCount(0)
})
