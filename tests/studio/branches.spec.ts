// Variants of a message and the ways a conversation went.
import { readFileSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { problems } from './accessibility'
import { answerWith, expect, test, type Studio } from './server'

const EARLIER = 'Earlier version'
const LATER = 'Later version'

// All that is said on the screen, in order.
const said = (page: Page) => page.locator('.message .said, .message .markdown').allInnerTexts()

const variants = (studio: Studio, at: number) => studio.page.locator('.message').nth(at).locator('.variants')

async function twoTurns(studio: Studio) {
  await studio.send('First question')
  await studio.settled()
  await studio.send('Second question')
  await studio.settled()
}

test('Regenerate keeps the old answer, and each has its own continuation', async ({ studio, page }) => {
  const bodies = await answerWith(page, ['one', 'two', 'uno', 'due', 'tre'].map((content) => ({ content })))
  await twoTurns(studio)
  await expect(page.locator('.variants')).toHaveCount(0)
  await studio.answers.first().getByRole('button', { name: 'Regenerate' }).click()
  await studio.settled()
  expect(await said(page)).toEqual(['First question', 'uno'])
  expect(bodies[2]!.messages).toEqual(bodies[0]!.messages)
  await expect(variants(studio, 1)).toHaveText('2 / 2')

  await studio.send('Another second question')
  await studio.settled()
  const second = ['First question', 'uno', 'Another second question', 'due']
  expect(await said(page)).toEqual(second)
  expect(bodies[3]!.messages.map((m: any) => m.content)).toEqual(second.slice(0, 3))

  await studio.button(EARLIER).click()
  const first = ['First question', 'one', 'Second question', 'two']
  await expect.poll(() => said(page)).toEqual(first)
  await expect(variants(studio, 1)).toHaveText('1 / 2')
  await expect(studio.button(EARLIER)).toBeDisabled()
  await page.reload()
  await expect.poll(() => said(page)).toEqual(first)
  await studio.button(LATER).click()
  await expect.poll(() => said(page)).toEqual(second)

  // A third one comes last, and the numbers stay with their answers.
  await studio.answers.first().getByRole('button', { name: 'Regenerate' }).click()
  await studio.settled()
  await expect(variants(studio, 1)).toHaveText('3 / 3')
  await studio.button(EARLIER).click()
  await expect.poll(() => said(page)).toEqual(second)
  await studio.button(EARLIER).click()
  await expect.poll(() => said(page)).toEqual(first)
  expect(bodies).toHaveLength(5)
})

test('an edited question keeps the old one, a branch inside a branch too', async ({ studio, page }) => {
  await answerWith(page, ['one', 'two', 'three', 'four'].map((content) => ({ content })))
  await twoTurns(studio)
  const rewrite = async (at: number, text: string) => {
    await studio.questions.nth(at).getByRole('button', { name: 'Edit' }).click()
    await page.getByRole('textbox', { name: 'Edit' }).fill(text)
    await studio.button('Save and send').click()
    await studio.settled()
  }
  await rewrite(1, 'Second, better')
  expect(await said(page)).toEqual(['First question', 'one', 'Second, better', 'three'])
  await rewrite(0, 'First, better')
  expect(await said(page)).toEqual(['First, better', 'four'])
  await variants(studio, 0).getByRole('button', { name: EARLIER }).click()
  await expect.poll(() => said(page)).toEqual(['First question', 'one', 'Second, better', 'three'])
  await variants(studio, 2).getByRole('button', { name: EARLIER }).click()
  await expect.poll(() => said(page)).toEqual(['First question', 'one', 'Second question', 'two'])
  await variants(studio, 0).getByRole('button', { name: LATER }).click()
  await expect.poll(() => said(page)).toEqual(['First, better', 'four'])
  await variants(studio, 0).getByRole('button', { name: EARLIER }).click()
  await expect.poll(() => said(page)).toEqual(['First question', 'one', 'Second question', 'two'])
})

test('the keyboard stays on the switch, which has names and colours that can be read', async ({ studio, page }) => {
  await answerWith(page, ['one', 'two', 'three'].map((content) => ({ content })))
  await studio.send('Question')
  await studio.settled()
  for (let i = 0; i < 2; i++) {
    await studio.button('Regenerate').click()
    await studio.settled()
  }
  await expect(page.getByRole('group', { name: 'Versions of this message' })).toHaveText('3 / 3')
  await studio.button(EARLIER).focus()
  await page.keyboard.press('Enter')
  await expect(variants(studio, 1)).toHaveText('2 / 3')
  await expect(studio.button(EARLIER)).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(variants(studio, 1)).toHaveText('1 / 3')
  // There is nothing before the first: the focus is on the only way left.
  await expect(studio.button(LATER)).toBeFocused()
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(await problems(page), colorScheme).toEqual([])
  }
})

test('an answer that never began is no variant', async ({ studio, page }) => {
  await page.route('**/v1/chat/completions', (route) => route.fulfill({ status: 500, json: { error: { message: 'no' } } }))
  await studio.send('Question')
  await studio.settled()
  await answerWith(page, [{ content: 'now it works' }])
  await studio.button('Try again').click()
  await studio.settled()
  expect(await said(page)).toEqual(['Question', 'now it works'])
  await expect(page.locator('.variants')).toHaveCount(0)
})

test('a conversation that an older page kept opens unchanged, and can branch', async ({ studio, page }) => {
  const old = {
    id: 'c0ffee',
    title: 'From long ago',
    created: 1,
    updated: 2,
    system: 'Be old.',
    unsent: 2,
    messages: [
      { id: 'm1', role: 'user', content: 'Old question' },
      { id: 'm2', role: 'assistant', content: 'Old answer', outcome: 'done' },
      { id: 'm3', role: 'user', content: 'Newer question' },
      { id: 'm4', role: 'assistant', content: 'Newer answer', outcome: 'done' },
    ],
  }
  const kept = (record: object | null) =>
    page.evaluate(
      (value) =>
        new Promise((resolve) => {
          const open = indexedDB.open('chimere', 1)
          open.onsuccess = () => {
            const store = open.result.transaction('conversations', 'readwrite').objectStore('conversations')
            if (value) store.put(value).onsuccess = () => resolve(null)
            else store.get('c0ffee').onsuccess = (event) => resolve((event.target as IDBRequest).result)
          }
        }),
      record,
    )
  await kept(old)
  await page.reload()
  await expect.poll(() => said(page)).toEqual(old.messages.map((m) => m.content))
  await expect(page.getByRole('note')).toBeVisible() // where what is sent begins
  expect(await kept(null)).toEqual(old)

  await answerWith(page, [{ content: 'Another beginning' }])
  await studio.answers.first().getByRole('button', { name: 'Regenerate' }).click()
  await studio.settled()
  expect(await said(page)).toEqual(['Old question', 'Another beginning'])
  await expect(page.getByRole('note')).toHaveCount(0)
  await studio.button(EARLIER).click()
  await expect.poll(() => said(page)).toEqual(old.messages.map((m) => m.content))
  await expect(page.getByRole('note')).toBeVisible()
})

for (const kind of ['JSON', 'Markdown']) {
  test(`export and import as ${kind} carry branches`, async ({ studio, page }) => {
    await answerWith(page, ['one', 'two', 'uno', 'three'].map((content) => ({ content })))
    await twoTurns(studio)
    await studio.answers.first().getByRole('button', { name: 'Regenerate' }).click()
    await studio.settled()
    await studio.questions.first().getByRole('button', { name: 'Edit' }).click()
    await page.getByRole('textbox', { name: 'Edit' }).fill('Another beginning')
    await studio.button('Save and send').click()
    await studio.settled()
    await studio.openSettings()
    const download = page.waitForEvent('download')
    await studio.button(`Export (${kind})`).click()
    const buffer = readFileSync((await (await download).path())!)
    await studio.button('Delete all conversations').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await expect(studio.questions).toHaveCount(0)
    await page.locator('input[data-purpose=import]').setInputFiles([{ name: 'x', mimeType: 'text/plain', buffer }])
    await expect.poll(() => said(page)).toEqual(['Another beginning', 'three'])
    await expect(variants(studio, 0)).toHaveText('2 / 2')
    await studio.button(EARLIER).click()
    await expect.poll(() => said(page)).toEqual(['First question', 'uno'])
    await expect(variants(studio, 1)).toHaveText('2 / 2')
    await variants(studio, 1).getByRole('button', { name: EARLIER }).click()
    await expect.poll(() => said(page)).toEqual(['First question', 'one', 'Second question', 'two'])
  })
}
