// screens.ts  Pictures of every screen on a page that is ten minutes old, run by hand: STUDIO_RUN=screens tests/studio/run
// They land in studio-tests/screens of the build tree. Those in docs/ are the model's own words, as they came, at
// temperature 0: studio-chat.png is chat-light-desktop, studio-phone.png tool-light-phone, studio-status.png
// status-dark-desktop, studio-tokens.png tokens-light-desktop, studio-memory.png memory-dark-desktop, studio-odo.png
// odo-steps-light-desktop, studio-files.png files-found-light-desktop, studio-sources.png
// odo-cited-light-phone. What the model in the box cannot write is an example, on a page that names no model:
// studio-artefact.png is example-chart-light-desktop.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from '@playwright/test'
import { age, answerWith, expect, Server, SlowChat, Studio, test } from './server'
import { sampleAnswer } from './sample'

const SIZES = [
  { name: 'desktop', width: 1280, height: 800 },
  { name: 'phone', width: 390, height: 844 },
]

const WEATHER = [
  {
    name: 'get_weather',
    description: 'Get the current weather for a city',
    parameters: { type: 'object', properties: { city: { type: 'string', description: 'Name of the city' } }, required: ['city'] },
  },
]

const formulas = `The roots of $ax^2 + bx + c = 0$ are

$$
x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}
$$

and the sum of squares is

\\[
\\begin{aligned}
f(n) &= \\sum_{i=1}^{n} x_i^2 = x_1^2 + \\dots + x_n^2 \\\\
     &= \\frac{n(n+1)(2n+1)}{6} \\quad \\text{for } x_i = i
\\end{aligned}
\\]`

const scrollTo = (page: Page, end: 'top' | 'bottom') =>
  page.locator('.scroller').evaluate((box, to) => (box.scrollTop = to === 'top' ? 0 : box.scrollHeight), end)

for (const theme of ['light', 'dark'] as const) {
  for (const { name, width, height } of SIZES) {
    const prepare = async (page: Page, url: string) => {
      await age(page)
      await page.emulateMedia({ colorScheme: theme })
      await page.setViewportSize({ width, height })
      await page.goto(url)
      return new Studio(page)
    }
    const shoot = (page: Page, screen: string) => page.screenshot({ path: `screens/${screen}-${theme}-${name}.png` })

    test(`the model's own words, ${theme}, ${name}`, async ({ page, server }) => {
      const studio = await prepare(page, server.url)
      await shoot(page, 'empty')
      await studio.openSettings()
      await page.getByLabel('Temperature').fill('0')
      await shoot(page, 'settings')
      await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
      for (const question of ['What is 36 plus 57?', 'Write a Python function that checks whether a number is even.']) {
        await studio.send(question)
        await studio.settled()
      }
      await expect(page.locator('.hljs-keyword').first()).toBeVisible()
      await page.getByRole('button', { name: /Thought for/ }).first().click()
      await scrollTo(page, 'top')
      await shoot(page, 'chat')

      await studio.openSettings()
      await page.getByLabel('Tools (JSON)').fill(JSON.stringify(WEATHER))
      await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
      await page.keyboard.press('Alt+n')
      await studio.send('What is the weather in Rome?')
      await studio.settled()
      await page.getByRole('button', { name: /Thought for/ }).last().click()
      await scrollTo(page, 'bottom')
      await shoot(page, 'tool')
      if (name === 'phone') {
        await page.getByRole('button', { name: 'Conversations' }).click()
        await shoot(page, 'menu')
        await page.getByRole('button', { name: 'Conversations' }).click()
      }

      await page.getByRole('link', { name: 'Status' }).click()
      // Some work to look at: many short answers after each other, and some that share their beginning.
      await page.evaluate(() => {
        const one = async (i: number) => {
          for (let turn = 0; turn < 16; turn++) {
            const content = `Tell me a short story, number ${(i + turn) % 5}.`
            const body = JSON.stringify({ messages: [{ role: 'user', content }], max_tokens: 120 + 40 * i })
            await fetch('/v1/chat/completions', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
          }
        }
        void Promise.all(Array.from({ length: 3 }, (_, i) => one(i)))
      })
      const samples = page.locator('.plot .canvas').first()
      await expect.poll(async () => Number(await samples.getAttribute('data-samples'))).toBeGreaterThan(8)
      await shoot(page, 'status')
      await page.locator('.status').evaluate((box) => (box.scrollTop = box.scrollHeight))
      await shoot(page, 'status-end')
    })

    test(`tokens, versions and search, ${theme}, ${name}`, async ({ page, server }) => {
      const studio = await prepare(page, server.url)
      await studio.openSettings()
      await page.getByLabel('Temperature').fill('0')
      await page.getByLabel('Certainty of each token').selectOption('on')
      await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
      await studio.send('What is the capital of Japan?')
      await studio.settled()
      await studio.send('Write a short story about a robot.')
      await studio.settled()
      await studio.answers.last().locator('.heat summary').click()
      await page.locator(':is([data-heat="2"], [data-heat="3"], [data-heat="4"])[role=button]').nth(8).click()
      await shoot(page, 'tokens')
      await page.locator('.alternatives button:enabled').first().click()
      await studio.settled()
      await scrollTo(page, 'bottom')
      await shoot(page, 'version')
      await page.keyboard.press('Control+k')
      await page.keyboard.type('robot')
      await expect(page.locator('.hit').first()).toBeVisible()
      await shoot(page, 'search')
      await page.keyboard.press('Enter')
      await expect(page.locator('.message:focus')).toBeVisible()
      await shoot(page, 'found')
    })

    test(`memory, ${theme}, ${name}`, async ({ page }) => {
      const folder = mkdtempSync(join(tmpdir(), 'chimere-engram-'))
      const server = new Server(['--engram', folder])
      await server.start()
      await prepare(page, server.url)
      await page.getByRole('link', { name: 'Memory', exact: true }).click()
      for (const text of ['The capital of Zubrovia is Lutzhaven.', 'Our office closes at five, and on Fridays at three.']) {
        await page.getByLabel('Teach something').fill(text)
        await page.getByRole('main').getByRole('button', { name: 'Learn' }).click()
        await expect(page.locator('.note').filter({ hasText: text })).toBeVisible()
      }
      await page.locator('.notice').getByRole('button', { name: 'Close' }).click()
      await shoot(page, 'memory')
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    })

    test(`the orchestrator, ${theme}, ${name}`, async ({ page, server }) => {
      const slow = new SlowChat(server)
      await slow.start()
      const folder = mkdtempSync(join(tmpdir(), 'chimere-routes-'))
      const own = new Server(['--odo-routes', folder])
      await own.start()
      const chooseOdo = async (studio: Studio) => {
        await studio.openSettings()
        await page.getByLabel('Temperature').fill('0')
        await studio.choose('Answers come from', 'odo')
        await page.getByLabel('Answers come from').scrollIntoViewIfNeeded()
      }
      const studio = await prepare(page, own.url)
      await chooseOdo(studio)
      await shoot(page, 'odo-picker')
      await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
      await studio.send('What is 48271 * 3947?')
      await studio.settled()
      await shoot(page, 'odo-quiet')
      await page.locator('.run summary').click()
      await scrollTo(page, 'bottom')
      await shoot(page, 'odo-steps')
      writeFileSync(join(folder, 'code.yaml'), 'title: Programs\ntools: [run_code]\nsteps:\n  - {agent: architect, prompt: Plan.}\n')
      writeFileSync(join(folder, 'broken.yaml'), 'title: [\n')
      await page.getByRole('link', { name: 'Orchestrator' }).click()
      await expect(page.locator('.runs > li')).toHaveCount(1)
      await shoot(page, 'odo')
      await page.locator('.odo').evaluate((box) => (box.scrollTop = box.scrollHeight))
      await page.locator('.runs summary').click()
      await page.locator('.odo').evaluate((box) => (box.scrollTop = box.scrollHeight))
      await shoot(page, 'odo-end')
      await own.stop()
      rmSync(folder, { recursive: true, force: true })

      const example = await prepare(page, slow.url)
      await chooseOdo(example)
      await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
      await example.send('How many days of rain has Lisbon?')
      await expect.poll(() => slow.isAsked).toBe(true)
      const code = 'days = [14, 12, 13]\nfor n in days:\n    print(n)\nprint(sum(days))'
      const sources = [
        { title: 'Climate of Lisbon', url: 'https://example.org/lisbon', snippet: 'Rain falls mostly from October to March.' },
        { title: 'rain.csv', snippet: '14, 12, 13' },
      ]
      const found = { tool: 'web_search', arguments: { query: 'rain Lisbon' }, result: '2 pages', is_untrusted: true, detail: { sources } }
      const asked = { tool: 'run_code', arguments: { code }, approval_id: 'a' }
      const steps = [
        { index: 0, stage: 'route', state: 'done', about: 'research: asked for', ms: 0.1 },
        { index: 1, stage: 'tool', state: 'done', about: 'web_search', ms: 812, detail: found },
        { index: 2, stage: 'grade', state: 'failed', about: 'no answer in 5 s', ms: 5000 },
        { index: 3, stage: 'tool', state: 'asks', about: 'run_code: waits to be allowed', ms: 0, detail: asked },
      ]
      slow.tell({ odo: { id: 'x', route: 'research', mode: 'quality', steps } })
      slow.write({ content: 'It rains mostly in winter [1].' })
      await expect(page.locator('.approval')).toBeVisible()
      await shoot(page, 'odo-approval')
      await page.locator('.run summary').click()
      await shoot(page, 'odo-live')
      slow.stop()
    })

    test(`files, ${theme}, ${name}`, async ({ page }) => {
      const folder = mkdtempSync(join(tmpdir(), 'chimere-files-'))
      const config = join(folder, 'odo.yaml')
      writeFileSync(config, 'mcp_servers:\n  notes:\n    command: [sh, -c, "read greeting; echo no licence >&2; exit 3"]\ntools: {clock: deny}\n')
      const own = new Server(['--collections-db', join(folder, 'c.db'), '--odo-config', config, '--engram', folder])
      await own.start()
      const studio = await prepare(page, own.url)
      await page.getByRole('link', { name: 'Files', exact: true }).click()
      for (const collection of ['handbook', 'garden']) {
        await page.getByLabel('Name of a new collection').fill(collection)
        await page.keyboard.press('Enter')
        await expect(page.getByRole('heading', { name: collection })).toBeVisible()
        if (collection === 'handbook') await page.getByRole('link', { name: 'All collections' }).click()
      }
      await shoot(page, 'files-new')
      const file = (file: string, text: string) => ({ name: file, mimeType: 'text/plain', buffer: Buffer.from(text, 'latin1') })
      const sowing = '# Sowing\n\nThe beans of Orlo are planted on the ninth of May, two thumbs deep.\n\n# Water\n\nBeans want water every second day.\n'
      await page.locator('[data-purpose=documents]').setInputFiles([
        file('beans.md', sowing),
        file('harvest 2025.csv', 'month,kilograms\nJuly,12\nAugust,31\n'),
        file('picture.png', '\x89PNG\r\n\x1a\n\0\0'),
      ])
      await expect(page.locator('.upload').last()).toHaveAttribute('data-state', 'failed')
      await shoot(page, 'files-added')
      await page.getByRole('button', { name: 'Clear this list' }).click()
      await page.getByLabel('A question or words').fill('when are the beans planted')
      await page.keyboard.press('Enter')
      await expect(page.locator('.passage').first()).toBeVisible()
      await shoot(page, 'files-found')
      await page.locator('.shelf').evaluate((box) => (box.scrollTop = box.scrollHeight))
      await shoot(page, 'files-end')
      await page.getByRole('link', { name: 'All collections' }).click()
      await shoot(page, 'files')
      await page.getByRole('button', { name: 'Delete “garden”' }).click()
      await shoot(page, 'files-delete')
      await page.keyboard.press('Escape')
      await page.getByRole('link', { name: 'Orchestrator' }).click()
      await page.getByRole('heading', { name: 'Servers of tools (MCP)' }).scrollIntoViewIfNeeded()
      await shoot(page, 'odo-servers')

      await page.getByRole('link', { name: 'Chat' }).click()
      await studio.openSettings()
      await page.getByLabel('Temperature').fill('0')
      await studio.choose('Answers come from', 'odo')
      await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
      await page.getByRole('button', { name: 'Sources and tools' }).click()
      await page.getByRole('combobox', { name: 'Collections' }).selectOption('these')
      await page.getByRole('checkbox', { name: 'handbook' }).uncheck()
      await shoot(page, 'odo-choices')
      await page.keyboard.press('Escape')
      await studio.send('When are the beans of Orlo planted?')
      await studio.settled()
      const number = studio.answers.getByRole('button', { name: /show the source/ }).first()
      if (await number.isVisible()) await number.click()
      await shoot(page, 'odo-cited')
      await own.stop()
      rmSync(folder, { recursive: true, force: true })
    })

    test(`presets and prompts, ${theme}, ${name}`, async ({ page, server }) => {
      const studio = await prepare(page, server.url)
      await studio.openSettings()
      await page.getByRole('textbox', { name: 'Name of a preset' }).fill('Terse, sure of itself')
      await page.keyboard.press('Enter')
      const prompts = page.getByRole('group', { name: 'Prompts' })
      await prompts.getByRole('textbox').first().fill('review')
      await prompts.getByRole('textbox').last().fill('Review this change: what is wrong, what is missing, what is good?')
      await prompts.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('group', { name: 'Presets' }).scrollIntoViewIfNeeded()
      await shoot(page, 'presets')
      await prompts.scrollIntoViewIfNeeded()
      await shoot(page, 'prompts')
      await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
      await studio.input.fill('/re')
      await expect(page.getByRole('option', { name: /review/ })).toBeVisible()
      await shoot(page, 'prompt-menu')
    })

    test(`models that are loaded, ${theme}, ${name}`, async ({ page, server }) => {
      const gb = (n: number) => n * 1e9
      const list = [
        { name: 'chimere-nano', state: 'loaded', file_bytes: gb(0.017), ram_bytes: gb(0.6), vram_bytes: 0, users: 1 },
        { name: 'a-larger-model-with-a-long-name-q4_k_m', state: 'loading', progress: 0.43, file_bytes: gb(15.6) },
        { name: 'small', state: 'unloaded', file_bytes: gb(2.4) },
        { name: 'broken', state: 'failed', file_bytes: 8, error: 'broken.gguf: expected the letters GGUF at its beginning, found something else' },
      ]
      const entry = ({ name: id, state: value, progress, error }: { name: string; state: string; progress?: number; error?: string }) => ({ id, status: { value, progress, error } })
      await page.route('**/v1/models', (route) => route.fulfill({ json: { data: list.map(entry) } }))
      await page.route('**/v1/status', async (route) => {
        const status = await (await route.fetch()).json()
        await route.fulfill({ json: { ...status, models: list } })
      })
      await page.route('**/v1/chat/completions', () => undefined)
      const studio = await prepare(page, server.url)
      await studio.openSettings()
      await studio.choose('Model', 'a-larger-model-with-a-long-name-q4_k_m')
      await shoot(page, 'model-picker')
      await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
      await studio.send('Hello')
      await expect(page.getByRole('progressbar')).toBeVisible()
      await shoot(page, 'model-loading')
      await page.getByRole('link', { name: 'Status' }).click()
      await expect(page.getByRole('region', { name: 'Models', exact: true }).first()).toBeVisible()
      await shoot(page, 'models')
    })

    test(`rating, ${theme}, ${name}`, async ({ page }) => {
      const folder = mkdtempSync(join(tmpdir(), 'chimere-rating-'))
      const own = new Server(['--journal', join(folder, 'journal.db')])
      await own.start()
      const studio = await prepare(page, own.url)
      await studio.send('What is 48 + 27?')
      await studio.settled()
      await studio.answers.getByRole('button', { name: 'Bad answer' }).click()
      await shoot(page, 'rating-asks')
      await page.getByRole('button', { name: 'Keep them' }).click()
      await expect(page.getByRole('dialog')).toHaveCount(0)
      await expect(page.locator('.correction')).toBeVisible()
      await scrollTo(page, 'bottom')
      await shoot(page, 'rating')
      await own.stop()
      rmSync(folder, { recursive: true, force: true })
    })

    test(`the guide and the question for the key, ${theme}, ${name}`, async ({ page, server }) => {
      await prepare(page, `${server.url}/#/models`)
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
      await shoot(page, 'guide')
      const own = new Server(['--api-key', 'secret'])
      await own.start()
      await prepare(page, own.url)
      await page.getByLabel('API key', { exact: true }).fill('wrong')
      await page.keyboard.press('Enter')
      await expect(page.getByRole('dialog').getByRole('alert')).toBeVisible()
      await shoot(page, 'key')
      await own.stop()
    })

    test(`examples, ${theme}, ${name}`, async ({ page, server }) => {
      await page.route('**/v1/models', (route) => route.fulfill({ json: { data: [{ id: 'an example, no model' }] } }))
      await page.route('**/health', (route) => route.fulfill({ json: { status: 'ok', model: 'an example, no model' } }))
      const studio = await prepare(page, server.url)
      await answerWith(page, [{ content: sampleAnswer }, { content: formulas }])
      await studio.send('Explain recurrent layers in one page, with code.')
      await studio.settled()
      await expect(page.locator('.hljs-keyword').first()).toBeVisible()
      await scrollTo(page, 'top')
      await shoot(page, 'example')
      await scrollTo(page, 'bottom')
      await shoot(page, 'example-end')
      await page.getByRole('button', { name: 'Preview' }).first().click()
      await expect(page.frameLocator('.artefact iframe').locator('svg')).toBeVisible()
      await scrollTo(page, 'top')
      await shoot(page, 'example-chart')
      await page.keyboard.press('Escape')
      await studio.send('And the formulas?')
      await expect(page.locator('math').last()).toBeVisible()
      await scrollTo(page, 'bottom')
      await shoot(page, 'example-formulas')
    })

    test(`while an answer is written, ${theme}, ${name}`, async ({ page, server }) => {
      const slow = new SlowChat(server)
      await slow.start()
      const studio = await prepare(page, slow.url)
      await studio.send('Explain recurrent layers in one page, with code.')
      await expect.poll(() => slow.isAsked).toBe(true)
      slow.write({ reasoning: 'The question is about layers. I should be brief' })
      await page.getByRole('button', { name: /Thinking/ }).click()
      await expect(page.locator('.thinking .markdown')).toContainText('be brief')
      await shoot(page, 'thinking')
      slow.write({ content: sampleAnswer.slice(0, 700) })
      await expect(page.locator('.markdown').last()).toContainText('constant')
      await shoot(page, 'streaming')
      slow.stop()
    })
  }
}
