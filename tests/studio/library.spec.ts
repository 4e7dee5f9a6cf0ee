// Presets and prompts: what a person made to be used again.
import { readFileSync } from 'node:fs'
import { problems } from './accessibility'
import { answerWith, expect, test, type Studio } from './server'

async function savePrompt(studio: Studio, name: string, text: string) {
  await studio.page.getByLabel('Name of a prompt').fill(name)
  await studio.page.getByLabel('Its text').fill(text)
  await studio.button('Save prompt').click()
}

const menu = (studio: Studio) => studio.page.getByRole('listbox', { name: 'Prompts' })

test('a preset keeps system prompt, sampling and thinking, and gives them back', async ({ studio, page }) => {
  const bodies = await answerWith(page, [{ content: 'ok' }])
  await studio.openSettings()
  const preset = page.getByRole('combobox', { name: 'Preset' })
  const prompt = page.getByLabel('System prompt')
  await prompt.fill('Talk like a pirate.')
  await page.getByLabel('Temperature').fill('0.3')
  await studio.choose('Thinking', 'off')
  await expect(preset).toHaveCount(0)
  await page.getByLabel('Name of a preset').fill('Pirate')
  await page.keyboard.press('Enter')
  await expect(preset).toHaveValue('Pirate')

  // What is changed afterwards is no preset any more; choosing it brings all of it back, in any conversation.
  await page.getByLabel('Temperature').fill('1')
  await expect(preset).toHaveValue('')
  await studio.send('Hello')
  await studio.settled()
  await studio.button('New conversation').click()
  await studio.choose('Thinking', 'on')
  await page.reload()
  await studio.openSettings()
  await preset.selectOption('Pirate')
  await expect(prompt).toHaveValue('Talk like a pirate.')
  await expect(page.getByLabel('Temperature')).toHaveValue('0.3')
  await studio.send('Hello again')
  await studio.settled()
  expect(bodies[1]).toMatchObject({
    messages: [{ role: 'system', content: 'Talk like a pirate.' }, { role: 'user', content: 'Hello again' }],
    temperature: 0.3,
    enable_thinking: false,
  })

  const library = page.getByRole('group', { name: 'Presets' })
  await library.getByRole('button', { name: 'Delete' }).click()
  await expect(preset).toHaveCount(0)
  await studio.button('Undo').click()
  await expect(preset).toHaveValue('Pirate')
})

test('a prompt is inserted by its name, with the keyboard and by a click', async ({ studio, page }) => {
  const bodies = await answerWith(page, [{ content: 'ok' }])
  await studio.openSettings()
  await savePrompt(studio, 'Translate', 'Translate this into French: ')
  await savePrompt(studio, 'Trim It', 'Make this shorter: ')
  await savePrompt(studio, 'review', 'Review this code.')
  await expect(page.getByRole('button', { name: '/trim-it', exact: true })).toBeVisible()

  await studio.input.focus()
  await page.keyboard.type('/')
  await expect(menu(studio).getByRole('option')).toHaveText([/^\/review/, /^\/translate/, /^\/trim-it/])
  await page.keyboard.type('tr')
  await expect(menu(studio).getByRole('option')).toHaveText([/^\/translate/, /^\/trim-it/])
  await expect(menu(studio).getByRole('option').first()).toHaveAttribute('aria-selected', 'true')
  await page.keyboard.press('ArrowDown')
  const chosen = menu(studio).getByRole('option', { selected: true })
  await expect(chosen).toHaveText(/trim-it/)
  await expect(studio.input).toHaveAttribute('aria-activedescendant', (await chosen.getAttribute('id'))!)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(await problems(page), colorScheme).toEqual([])
  }
  await page.keyboard.press('Enter')
  await expect(menu(studio)).toHaveCount(0)
  await expect(studio.input).toHaveValue('Make this shorter: ')
  expect(bodies).toHaveLength(0) // Enter chose, and sent nothing

  // In the middle of a text, and by a click; what is no name is left alone.
  await page.keyboard.type('a long text. /transl')
  await menu(studio).getByRole('option').click()
  await expect(studio.input).toHaveValue('Make this shorter: a long text. Translate this into French: ')
  await expect(studio.input).toBeFocused()
  await page.keyboard.type('and/or 1/2 /none')
  await expect(menu(studio)).toHaveCount(0)
  await page.keyboard.type(' /re')
  await expect(menu(studio)).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(menu(studio)).toHaveCount(0)
  await page.keyboard.press('Enter')
  await studio.settled()
  expect(bodies[0]!.messages[0].content).toBe(
    'Make this shorter: a long text. Translate this into French: and/or 1/2 /none /re',
  )
})

test('a prompt can be changed and deleted, and the delete taken back', async ({ studio, page }) => {
  await studio.openSettings()
  await savePrompt(studio, 'greet', 'Say hello.')
  await page.getByRole('button', { name: '/greet', exact: true }).click()
  await expect(page.getByLabel('Its text')).toHaveValue('Say hello.')
  await page.getByLabel('Its text').fill('Say good morning.')
  await studio.button('Save prompt').click()
  await expect(page.getByRole('button', { name: '/greet', exact: true })).toHaveCount(1)
  await page.reload()
  await studio.input.fill('/gr')
  await page.keyboard.press('Tab')
  await expect(studio.input).toHaveValue('Say good morning.')
  await studio.openSettings()
  await studio.button('Delete /greet').click()
  await expect(page.getByRole('button', { name: '/greet', exact: true })).toHaveCount(0)
  await studio.button('Undo').click()
  await expect(page.getByRole('button', { name: '/greet', exact: true })).toBeVisible()
})

test('presets and prompts are exported with all conversations, and come back', async ({ studio, page, browser, server }) => {
  await studio.openSettings()
  await savePrompt(studio, 'greet', 'Say hello.')
  await page.getByLabel('System prompt').fill('Be brief.')
  await page.getByLabel('Name of a preset').fill('Brief')
  await page.keyboard.press('Enter')
  const download = page.waitForEvent('download')
  await studio.button('Export all (JSON)').click()
  const buffer = readFileSync((await (await download).path())!)
  const fresh = await browser.newContext()
  const other = await fresh.newPage()
  await other.goto(server.url)
  await other.locator('input[data-purpose=import]').setInputFiles([{ name: 'all.json', mimeType: 'application/json', buffer }])
  await expect(other.getByText('Presets and prompts imported: 2')).toBeVisible()
  await other.getByRole('textbox', { name: 'Write a message' }).fill('/greet')
  await other.keyboard.press('Tab')
  await expect(other.getByRole('textbox', { name: 'Write a message' })).toHaveValue('Say hello.')
  await other.locator('header.top').getByRole('button', { name: 'Settings' }).click()
  await other.getByRole('combobox', { name: 'Preset' }).selectOption('Brief')
  await expect(other.getByLabel('System prompt')).toHaveValue('Be brief.')
  await fresh.close()
})

test('the list of prompts fits on a phone', async ({ studio, page }) => {
  await studio.openSettings()
  for (let i = 0; i < 20; i++) await savePrompt(studio, `long-name-of-a-prompt-${i}`, 'word '.repeat(50))
  await page.setViewportSize({ width: 360, height: 740 })
  await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
  await studio.input.pressSequentially('/')
  const box = (await menu(studio).boundingBox())!
  expect(box.y).toBeGreaterThanOrEqual(0)
  expect(box.x + box.width).toBeLessThanOrEqual(360)
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)
})
