// What a person has written and not sent, and what belongs to one conversation alone.
import { answerWith, expect, Studio, test } from './server'

const conversation = (page: import('@playwright/test').Page, name: string) =>
  page.getByRole('navigation', { name: 'Conversations' }).getByRole('button', { name, exact: true })

test('a draft stays with its conversation, over a reload, the status and other conversations', async ({ studio, page }) => {
  await answerWith(page, [{ content: 'ok' }])
  await studio.send('First')
  await studio.settled()
  await studio.input.pressSequentially('a thought for the first')
  await page.locator('form input[type=file]').setInputFiles([
    { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('notes') },
  ])
  await expect(page.locator('.composer .files')).toContainText('notes.txt')
  await studio.button('New conversation').click()
  await expect(studio.input).toHaveValue('')
  await expect(page.locator('.composer .files')).toHaveCount(0)
  await studio.send('Second')
  await studio.settled()
  await studio.input.pressSequentially('one for the second')

  await conversation(page, 'First').click()
  await expect(studio.input).toHaveValue('a thought for the first')
  await page.getByRole('link', { name: 'Status' }).click()
  await page.getByRole('link', { name: 'Chat' }).click()
  await expect(studio.input).toHaveValue('a thought for the first')
  await page.reload()
  await conversation(page, 'First').click()
  await expect(studio.input).toHaveValue('a thought for the first')
  await expect(page.locator('.composer .files')).toContainText('notes.txt')
  await conversation(page, 'Second').click()
  await expect(studio.input).toHaveValue('one for the second')

  // What was sent, or went with its conversation, is no draft any more.
  await studio.button('Send').click()
  await studio.settled()
  await expect(studio.input).toHaveValue('')
  await studio.button('Delete “First”').click()
  await page.reload()
  await expect(studio.questions).toHaveCount(2)
  await expect(studio.input).toHaveValue('')
  const left = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const open = indexedDB.open('chimere-drafts')
        open.onsuccess = () => {
          const all = open.result.transaction('drafts').objectStore('drafts').getAll()
          all.onsuccess = () => resolve(all.result)
        }
      }),
  )
  expect(left).toEqual([])
})

test('the first draft of a fresh page survives a reload, and New conversation keeps it', async ({ studio, page }) => {
  await studio.input.pressSequentially('not yet asked')
  await page.reload()
  await expect(studio.input).toHaveValue('not yet asked')
  await studio.button('New conversation').click()
  await expect(studio.input).toHaveValue('not yet asked')
})

test('the system prompt of one conversation is not that of the next', async ({ studio, page }) => {
  const bodies = await answerWith(page, [{ content: 'Arr.' }, { content: 'Hello.' }])
  await studio.openSettings()
  const prompt = page.getByLabel('System prompt')
  await prompt.fill('Talk like a pirate.')
  await page.reload()
  await studio.openSettings()
  await expect(prompt).toHaveValue('Talk like a pirate.')
  await studio.send('Hello')
  await studio.settled()
  expect(bodies[0]!.messages[0]).toEqual({ role: 'system', content: 'Talk like a pirate.' })

  await studio.button('New conversation').click()
  await expect(prompt).toHaveValue('')
  await studio.send('Hello again')
  await studio.settled()
  expect(bodies[1]!.messages).toEqual([{ role: 'user', content: 'Hello again' }])
  await conversation(page, 'Hello').click()
  await expect(prompt).toHaveValue('Talk like a pirate.')
})

test('Escape leaves Edit as it was, and the keyboard where it was', async ({ studio, page }) => {
  await answerWith(page, [{ content: 'ok' }])
  await studio.send('A question')
  await studio.settled()
  const edit = studio.questions.getByRole('button', { name: 'Edit' })
  await edit.focus()
  await page.keyboard.press('Enter')
  const area = page.getByRole('textbox', { name: 'Edit' })
  await expect(area).toBeFocused()
  await page.keyboard.type(' and more')
  await page.keyboard.press('Escape')
  await expect(area).toHaveCount(0)
  await expect(studio.questions).toContainText('A question')
  await expect(studio.questions).not.toContainText('and more')
  await expect(edit).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(area).toHaveValue('A question')
  await studio.button('Cancel').click()
  await expect(edit).toBeFocused()
})

test('Escape in a title gives up the title, and stops no answer', async ({ page, slow }) => {
  await page.goto(slow.url)
  const studio = new Studio(page)
  await studio.send('A long one')
  await expect.poll(() => slow.isAsked).toBe(true)
  await conversation(page, 'running A long one').press('F2')
  const title = page.getByRole('textbox', { name: 'Title of the conversation' })
  await title.fill('Another')
  await title.press('Escape')
  await expect(title).toHaveCount(0)
  expect(slow.hasLeft).toBe(false)
  slow.write({ content: 'Still here' })
  await expect(studio.answers).toContainText('Still here')
  await expect(page.getByRole('navigation', { name: 'Conversations' })).not.toContainText('Another')
  slow.end()
})

for (const width of [1280, 390]) {
  test(`the composer grows with its text up to a bound, ${width} wide`, async ({ studio, page }) => {
    await page.setViewportSize({ width, height: 800 })
    const height = async () => (await studio.input.boundingBox())!.height
    const one = await height()
    // One long line, as it is pasted: no line break in it.
    await studio.input.fill('word '.repeat(width === 390 ? 24 : 60))
    await expect.poll(height).toBeGreaterThan(one * 1.7)
    const isWhole = () => studio.input.evaluate((area) => area.scrollHeight <= area.clientHeight + 1)
    expect(await isWhole()).toBe(true)
    await studio.input.fill('line\n'.repeat(100))
    await expect.poll(height).toBeGreaterThan(200)
    expect(await height()).toBeLessThanOrEqual(320)
    await expect(studio.button('Send')).toBeInViewport()
    await studio.input.fill('')
    await expect.poll(height).toBe(one)
  })
}

test('a growing composer does not cover the end of the conversation', async ({ studio, page }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  await answerWith(page, [{ content: 'word '.repeat(400) + '\n\nThe very end.' }])
  await studio.send('A long answer, please')
  await studio.settled()
  const end = page.getByText('The very end.')
  await expect(end).toBeInViewport()
  await studio.input.fill('line\n'.repeat(20))
  await expect.poll(async () => {
    const [text, area] = [await end.boundingBox(), await page.locator('.composer').boundingBox()]
    return text!.y + text!.height <= area!.y
  }).toBe(true)
})
