// How deeply the model thinks: chosen in the settings, kept in presets.
import { answerWith, expect, test } from './server'

test('the depth of thought is sent as the mode of thinking control, and only where one was chosen', async ({ studio, page }) => {
  const bodies = await answerWith(page, [{ content: 'ok' }])
  await studio.send('One')
  await studio.settled()
  expect(bodies[0]).not.toHaveProperty('thinking_control')
  await studio.openSettings()
  const depth = page.getByRole('combobox', { name: 'Depth of thought' })
  await expect(depth).toHaveValue('')
  for (const mode of ['off', 'fast', 'quality', 'ultra']) {
    await depth.selectOption(mode)
    await studio.send(mode)
    await studio.settled()
    expect(bodies.at(-1)!.thinking_control).toEqual({ mode })
  }
  await page.reload()
  await studio.openSettings()
  await expect(depth).toHaveValue('ultra')
})

test('the real server takes each mode, and a preset keeps it', async ({ studio, page }) => {
  await studio.openSettings()
  await page.getByLabel('Temperature').fill('0')
  await page.getByLabel('Longest answer, tokens').fill('200')
  for (const mode of ['fast', 'ultra']) {
    await studio.choose('Depth of thought', mode)
    const answer = page.waitForResponse('**/v1/chat/completions')
    await studio.send('What is 36 plus 57?')
    expect((await answer).status()).toBe(200)
    await studio.settled()
    await expect(studio.answers.last().locator('.problem')).toHaveCount(0)
  }
  await page.getByRole('textbox', { name: 'Name of a preset' }).fill('deep')
  await page.keyboard.press('Enter')
  await studio.choose('Depth of thought', '')
  await page.getByRole('combobox', { name: 'Preset', exact: true }).selectOption('deep')
  await expect(page.getByRole('combobox', { name: 'Depth of thought' })).toHaveValue('ultra')
})
