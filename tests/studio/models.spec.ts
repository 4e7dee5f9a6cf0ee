// A server with a folder of models: switching, and what is shown while one is loaded.
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as alone } from '@playwright/test'
import { looksRight, problems } from './accessibility'
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

alone('the status lists the models before one is loaded, and its buttons load and unload them', async ({ page }) => {
  const folder = mkdtempSync(join(tmpdir(), 'chimere-models-'))
  for (const name of ['alpha', 'beta']) copyFileSync(process.env.CHIMERE_MODEL!, join(folder, `${name}.gguf`))
  writeFileSync(join(folder, 'broken.gguf'), 'no model')
  writeFileSync(join(folder, 'chimere.yaml'), 'model-options:\n  beta: {ctx: 512, temp: 0.5}\n')
  const server = new Server(['--models', folder])
  await server.start()
  try {
    await page.goto(server.url)
    await page.getByRole('link', { name: 'Status' }).click()
    const table = page.getByRole('region', { name: 'Models', exact: true })
    const row = (name: string) => table.getByRole('row').filter({ hasText: name })
    await expect(table.getByRole('row')).toHaveCount(5)
    await expect(row('alpha')).toContainText('not loaded')
    await expect(row('beta').getByRole('rowheader')).toHaveText('betactx 512 · temp 0.5')
    await expect(row('beta').locator('small')).toHaveCSS('display', 'block')
    await expect(page.getByText('This server does not report its status.')).toHaveCount(0)
    await looksRight(page, 'models that are not loaded')

    await page.getByRole('button', { name: 'Load beta' }).focus()
    await page.keyboard.press('Enter')
    await expect(row('beta')).toContainText('loaded')
    // The button is the same one, and has the focus still.
    await expect(page.getByRole('button', { name: 'Unload beta' })).toBeFocused()
    await expect(row('beta')).toContainText('MB')
    await expect(row('alpha')).toContainText('not loaded')
    await expect(page.getByRole('heading', { name: 'Throughput' })).toBeVisible()
    await page.getByRole('button', { name: 'Load broken' }).click()
    await expect(row('broken').locator('.problem')).toBeVisible()
    await page.getByRole('button', { name: 'Unload beta' }).click()
    await expect(row('beta')).toContainText('not loaded')
    await expect(page.getByRole('heading', { name: 'Throughput' })).toHaveCount(0)
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a model of the status that is being loaded shows how far it is', async ({ page, server }) => {
  let models: object[] = [{ name: 'large', state: 'loading', progress: 0.25, file_bytes: 4e9 }]
  await page.route('**/v1/status', (route) => route.fulfill({ json: { version: '1', uptime_seconds: 5, models, keys: [] } }))
  await page.goto(`${server.url}/#/status`)
  await expect(page.getByRole('progressbar', { name: 'large is being loaded: 25 %' })).toBeVisible()
  await expect(page.getByRole('button', { name: 'Load large' })).toBeDisabled()
  models = [{ name: 'large', state: 'loaded', file_bytes: 4e9, ram_bytes: 1e9, vram_bytes: 5e9, users: 2 }]
  await expect(page.getByRole('row').filter({ hasText: 'large' })).toContainText('loaded · answering 2')
  await expect(page.getByRole('row').filter({ hasText: 'large' })).toContainText('1 GB + 5 GB on the card')
  await page.route('**/models/unload', (route) =>
    route.fulfill({ status: 409, json: { error: { message: "model 'large' is answering" } } }),
  )
  await page.getByRole('button', { name: 'Unload large' }).click()
  await expect(page.locator('.notice')).toContainText("model 'large' is answering")
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
