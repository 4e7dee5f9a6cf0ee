// A server with a folder of models: switching, and what is shown while one is loaded.
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as alone } from '@playwright/test'
import { problems } from './accessibility'
import { events, expect, Server, Studio, test } from './server'

alone('the models of a folder are chosen by name and loaded when they are asked for', async ({ page }) => {
  const folder = mkdtempSync(join(tmpdir(), 'chimere-models-'))
  for (const name of ['alpha', 'beta']) copyFileSync(process.env.CHIMERE_MODEL!, join(folder, `${name}.gguf`))
  writeFileSync(join(folder, 'broken.gguf'), 'no model')
  const server = new Server(['--models', folder])
  await server.start()
  try {
    await page.goto(server.url)
    const studio = new Studio(page)
    await studio.openSettings()
    const options = page.getByRole('combobox', { name: 'Model' }).locator('option')
    await expect(options.filter({ hasText: 'beta' })).toHaveText('beta · not loaded')
    await studio.choose('Model', 'beta')
    await expect(page.locator('.model-name')).toHaveText('beta')
    const asked = page.waitForRequest('**/v1/chat/completions')
    await studio.send('What is 3 + 4?')
    expect((await asked).postDataJSON().model).toBe('beta')
    await studio.settled()
    await expect(studio.answers.locator('.markdown')).not.toBeEmpty()
    await expect(options.filter({ hasText: 'beta' })).toHaveText('beta · loaded')
    // What is known only of a loaded model.
    await expect(page.locator('.panel')).toContainText('context of 16,384 tokens')
    await expect(page.getByRole('meter', { name: 'Context' })).toBeVisible()

    await studio.choose('Model', 'broken')
    await studio.send('And you?')
    await studio.settled()
    await expect(studio.answers.last().locator('.problem')).toBeVisible()
    await expect(options.filter({ hasText: 'broken' })).toHaveText('broken · cannot be loaded')
    await studio.choose('Model', 'alpha')
    await studio.answers.last().getByRole('button', { name: 'Try again' }).click()
    await studio.settled()
    await expect(studio.answers.last().locator('.problem')).toHaveCount(0)
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the progress of loading is shown while somebody waits for it', async ({ page, server }) => {
  let status: object = { value: 'unloaded' }
  await page.route('**/v1/models', (route) => route.fulfill({ json: { data: [{ id: 'large', status }] } }))
  let answer = () => undefined as void
  await page.route('**/v1/chat/completions', async (route) => {
    await new Promise<void>((resolve) => (answer = resolve))
    await route.fulfill({ contentType: 'text/event-stream', body: events({ content: 'Here I am.' }) })
  })
  await page.goto(server.url)
  const studio = new Studio(page)
  await studio.send('Hello')
  await expect(studio.answers).toContainText('large is about to be loaded.')
  for (const [progress, percent] of [[0.2, 20], [0.65, 65]] as const) {
    status = { value: 'loading', progress }
    await expect(studio.answers).toContainText(`large is being loaded: ${percent} %`)
    await expect(page.getByRole('progressbar', { name: `large is being loaded: ${percent} %` })).toBeVisible()
  }
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(await problems(page), colorScheme).toEqual([])
  }
  status = { value: 'loaded' }
  await expect(page.getByRole('progressbar')).toHaveCount(0)
  answer()
  await expect(studio.answers).toContainText('Here I am.')
})
