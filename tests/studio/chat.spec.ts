// Talking to the real model. What it says is its own affair: the tests look at what the page does with it.
import { readFileSync } from 'node:fs'
import { answerWith, expect, Studio, test } from './server'

test('sends, streams and shows what the answer cost', async ({ studio }) => {
  await expect(studio.page.getByRole('heading', { name: 'What shall we talk about?' })).toBeVisible()
  await studio.send('Hello')
  await expect(studio.questions).toHaveText(/Hello/)
  await studio.settled()
  await expect(studio.answers).toHaveCount(1)
  await expect(studio.answers.locator('.speed')).toContainText('tok/s')
  await expect(studio.answers.locator('.speed')).toContainText('first token after')
  await expect(studio.answers.locator('.speed')).toContainText('prompt tokens from cache')
  await expect(studio.page.getByRole('navigation', { name: 'Conversations' })).toContainText('Hello')
})

test('an answer that streams grows, and stops when told', async ({ page, slow }) => {
  await page.goto(slow.url)
  const studio = new Studio(page)
  await studio.send('Write a long story')
  await expect.poll(() => slow.isAsked).toBe(true)
  slow.write({ content: 'Once upon a time' })
  await expect(studio.answers).toContainText('Once upon a time')
  slow.write({ content: ', there was a robot' })
  await expect(studio.answers).toContainText('there was a robot')
  await expect(studio.answers).toHaveAttribute('aria-busy', 'true')
  expect(slow.hasLeft).toBe(false)
  await studio.button('Stop').click()
  await studio.settled()
  await expect.poll(() => slow.hasLeft).toBe(true)
  await expect(studio.answers).toContainText('Once upon a time, there was a robot')
  await expect(studio.answers).toContainText('Stopped.')
})

test('stopping the real model leaves the page ready for more', async ({ studio }) => {
  await studio.send('Write a very long story about a robot, a bird and a river.')
  // Whether it is still writing or done already, Escape is right.
  await studio.page.keyboard.press('Escape')
  await studio.settled()
  await studio.send('Hello')
  await studio.settled()
  await expect(studio.answers).toHaveCount(2)
})

test('regenerate gives another answer to the same question', async ({ studio }) => {
  const bodies = await answerWith(studio.page, [{ content: 'first answer' }, { content: 'second answer' }])
  await studio.send('Question')
  await expect(studio.answers).toHaveText(/first answer/)
  await studio.button('Regenerate').click()
  await expect(studio.answers).toHaveText(/second answer/)
  await expect(studio.answers).toHaveCount(1)
  expect(bodies[1]!.messages).toEqual(bodies[0]!.messages)
})

test('editing a question begins anew from it', async ({ studio }) => {
  const bodies = await answerWith(studio.page, [{ content: 'one' }, { content: 'two' }, { content: 'three' }])
  await studio.send('First question')
  await expect(studio.answers).toHaveText(/one/)
  await studio.send('Second question')
  await expect(studio.answers.last()).toHaveText(/two/)
  await studio.questions.first().getByRole('button', { name: 'Edit' }).click()
  await studio.page.getByRole('textbox', { name: 'Edit' }).fill('Better question')
  await studio.button('Save and send').click()
  await expect(studio.answers).toHaveText(/three/)
  await expect(studio.questions).toHaveCount(1)
  expect(bodies[2]!.messages).toEqual([{ role: 'user', content: 'Better question' }])
})

test('thinking is folded, counted and can be read', async ({ studio }) => {
  await answerWith(studio.page, [{ reasoning: 'Let me think about **this**.', content: 'Done.' }])
  await studio.send('Think')
  await studio.settled()
  const thought = studio.answers.getByRole('region', { name: 'Thinking' })
  await expect(thought).not.toContainText('Let me think')
  await thought.getByRole('button', { name: /Thought for \d+ tokens/ }).click()
  await expect(thought.locator('strong')).toHaveText('this')
})

test('the certainty of every token is a strip below the answer, when it is asked for', async ({ studio }) => {
  await studio.send('What is 3 + 4?')
  await studio.settled()
  await expect(studio.answers.locator('.heat')).toHaveCount(0)
  await studio.openSettings()
  await studio.page.getByLabel('Certainty of each token').selectOption('on')
  const asked = studio.page.waitForRequest('**/v1/chat/completions')
  await studio.send('What is 3 + 5?')
  expect((await asked).postDataJSON().token_stats).toBe(true)
  await studio.settled()
  const strip = studio.answers.last().locator('.heat')
  await expect(strip).toContainText(/Certainty [\d.]+ %/)
  await strip.locator('summary').click()
  await expect(strip.locator('[data-heat]').first()).toBeVisible()
  // Every token that was counted has its place in the strip.
  const speed = await studio.answers.last().locator('.speed').innerText()
  await expect(strip.locator('[data-heat]')).toHaveCount(Number(/(\d+) tokens/.exec(speed)![1]))
  await expect(strip).not.toContainText('think>')
})

test('what steers the model has a name in the strip of certainty', async ({ studio }) => {
  const tokens = ['<think>', 'So ', '</think>', '\n\n', '1 < 2', '<b>', '<|im_end|>']
  await answerWith(studio.page, [{ reasoning: 'So ', content: '1 < 2<b>', certainty: tokens }])
  await studio.send('Which is less?')
  await studio.settled()
  const strip = studio.answers.locator('.heat')
  await strip.locator('summary').click()
  await expect(strip.locator('[data-heat]')).toHaveCount(tokens.length)
  await expect(strip.locator('.mark')).toHaveText(['thinking', 'end of thinking', 'im end'])
  await expect(strip.locator('p')).toHaveText(/^\s*thinkingSo end of thinking\s*1 < 2<b>im end$/)
})

test('what was guessed ahead is underlined in the strip, and counted', async ({ studio }) => {
  const tokens = ['one', ' two', ' three']
  await answerWith(studio.page, [{ content: 'one two three', certainty: tokens, guessed: [' two', ' three'] }])
  await studio.send('Count to three.')
  await studio.settled()
  const strip = studio.answers.locator('.heat')
  await expect(strip.locator('summary')).toHaveText('Certainty 50 % · 2 guessed ahead')
  await strip.locator('summary').click()
  await expect(strip.locator('.guessed')).toHaveText([' two', ' three'])
  await expect(strip.locator('.guessed').first()).toHaveCSS('text-decoration-line', 'underline')
  await expect(strip.locator('.guessed').first()).toHaveAttribute('title', /guessed ahead$/)
  await expect(strip.getByText('one')).toHaveAttribute('title', /nats$/)
  await studio.page.reload()
  await expect(studio.answers.locator('.heat summary')).toHaveText('Certainty 50 % · 2 guessed ahead')
})

test('a thought can be stopped while it grows', async ({ page, slow }) => {
  await page.goto(slow.url)
  const studio = new Studio(page)
  await studio.send('Think for a long time')
  await expect.poll(() => slow.isAsked).toBe(true)
  slow.write({ reasoning: 'Let me see' })
  await expect(studio.button('Thinking: 2 tokens')).toBeVisible()
  slow.write({ reasoning: ' again' })
  await expect(studio.button('Thinking: 4 tokens')).toBeVisible()
  await studio.button('Stop thinking').click()
  await expect.poll(() => slow.stopped).toEqual([slow.requestId])
  slow.write({ content: 'The answer.' })
  await expect(studio.button('Stop thinking')).toHaveCount(0)
  slow.end()
  await studio.settled()
  await expect(studio.answers).toContainText('The answer.')
  await expect(studio.button(/Thought for 4 tokens/)).toBeVisible()
})

test('the real server names its requests, so that they can be stopped', async ({ studio, page, server }) => {
  const answered = page.waitForResponse('**/v1/chat/completions')
  await studio.send('Hello')
  const id = (await answered).headers()['x-request-id']
  expect(id).toMatch(/^[\w-]+$/)
  await studio.settled()
  // It has ended, and the server knows that too.
  expect((await page.request.post(`${server.url}/v1/requests/${id}/stop_thinking`)).status()).toBe(404)
})

test('a tool call is shown, and its result goes back to the model', async ({ studio }) => {
  const call = { id: 'call-1', name: 'weather', arguments: '{"city":"Paris"}' }
  const bodies = await answerWith(studio.page, [{ toolCalls: [call] }, { content: 'It rains in Paris.' }])
  await studio.openSettings()
  await studio.page.getByLabel('Tools (JSON)').fill('[{"name": "weather", "parameters": {"type": "object"}}]')
  await studio.send('How is the weather in Paris?')
  const shown = studio.page.getByRole('region', { name: 'Tool call: weather' })
  await expect(shown.locator('pre')).toContainText('"city": "Paris"')
  await shown.getByRole('textbox', { name: 'Result', exact: true }).fill('rain')
  await shown.getByRole('button', { name: 'Give this result' }).click()
  await expect(studio.answers.last()).toContainText('It rains in Paris.')
  expect(bodies[0]!.tools[0].function.name).toBe('weather')
  expect(bodies[1]!.messages.at(-1)).toEqual({ role: 'tool', tool_call_id: 'call-1', content: 'rain' })
  expect(bodies[1]!.messages.at(-2).tool_calls[0].function).toEqual({ name: 'weather', arguments: '{"city":"Paris"}' })
})

test('a tool the real model must call is shown', async ({ studio }) => {
  await studio.openSettings()
  await studio.choose('Thinking', 'off')
  await studio.page.getByLabel('Tools (JSON)').fill(
    JSON.stringify([{ name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } }]),
  )
  await studio.page.getByLabel('Longest answer, tokens').fill('100')
  await studio.page.route('**/v1/chat/completions', (route) =>
    route.continue({ postData: JSON.stringify({ ...route.request().postDataJSON(), tool_choice: 'required' }) }),
  )
  await studio.send('What is the weather in Rome?')
  await expect(studio.page.getByRole('region', { name: 'Tool call: get_weather' })).toBeVisible()
})

test('settings reach the server, and those not set are left out', async ({ studio }) => {
  const bodies = await answerWith(studio.page, [{ content: 'ok' }])
  await studio.openSettings()
  await studio.page.getByLabel('System prompt').fill('Be brief.')
  await studio.page.getByLabel('Temperature').fill('0.3')
  await studio.page.getByLabel('Longest answer, tokens').fill('50')
  await studio.choose('Thinking', 'off')
  await studio.send('Hello')
  await studio.settled()
  expect(bodies[0]).toEqual({
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello' },
    ],
    temperature: 0.3,
    max_tokens: 50,
    enable_thinking: false,
    stream: true,
    return_progress: true,
    stream_options: { include_usage: true },
  })
})

test('text files go with the message, others are refused', async ({ studio }) => {
  const bodies = await answerWith(studio.page, [{ content: 'ok' }])
  const picker = studio.page.locator('form input[type=file]')
  await picker.setInputFiles([
    { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('three ``` fences') },
    { name: 'picture.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([0xff, 0xfe, 0, 1]) },
  ])
  await expect(studio.page.getByText('picture.bin is not a text file.')).toBeVisible()
  await expect(studio.page.getByRole('listitem').filter({ hasText: 'notes.txt' })).toBeVisible()
  await studio.send('Read this')
  await studio.settled()
  expect(bodies[0]!.messages[0].content).toBe('File notes.txt:\n````\nthree ``` fences\n````\n\nRead this')
})

test('every refused file is named', async ({ studio }) => {
  const binary = (name: string) => ({ name, mimeType: 'application/octet-stream', buffer: Buffer.from([0xff, 0xfe, 0, 1]) })
  await studio.page.locator('form input[type=file]').setInputFiles([
    binary('one.bin'),
    binary('two.bin'),
    { name: 'huge.txt', mimeType: 'text/plain', buffer: Buffer.alloc(1_000_001, 'x') },
  ])
  for (const text of ['one.bin is not a text file.', 'two.bin is not a text file.', 'huge.txt is larger than 1 MB.']) {
    await expect(studio.page.getByText(text)).toBeVisible()
  }
  // Each can be closed, and the others stay.
  const notices = studio.page.locator('.notice')
  await expect(notices).toHaveCount(3)
  await notices.filter({ hasText: 'two.bin' }).getByRole('button', { name: 'Close' }).click()
  await expect(notices).toHaveCount(2)
  await expect(notices.filter({ hasText: 'two.bin' })).toHaveCount(0)
})

test('a dropped file is attached', async ({ studio }) => {
  const transfer = await studio.page.evaluateHandle(() => {
    const data = new DataTransfer()
    data.items.add(new File(['dropped text'], 'dropped.txt', { type: 'text/plain' }))
    return data
  })
  await studio.page.dispatchEvent('body', 'drop', { dataTransfer: transfer })
  await expect(studio.page.getByRole('listitem').filter({ hasText: 'dropped.txt' })).toBeVisible()
})

test('Markdown becomes elements, code has colours and a copy button', async ({ studio, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const code = 'def add(a, b):\n    return a + b'
  const content = [
    '# Title',
    'Some *emphasis*, `code` and a [link](https://example.org/x).',
    '1. one\n2. two\n\n   inside\n\n   ```js\n   let x = 1\n   ```\n3. three',
    '| a | b |\n|---|---|\n| 1 | 2 |',
    '```python\n' + code + '\n```',
    'The end.',
  ].join('\n\n')
  await answerWith(studio.page, [{ content }])
  await studio.send('Markdown')
  await studio.settled()
  const answer = studio.answers
  await expect(answer.getByRole('heading', { name: 'Title' })).toBeVisible()
  await expect(answer.locator('ol > li')).toHaveCount(3)
  await expect(answer.getByRole('link', { name: 'link' })).toHaveAttribute('rel', /noopener/)
  await expect(answer.getByRole('cell', { name: '2' })).toBeVisible()
  await expect(answer.locator('.code .hljs-keyword').first()).toHaveText('def')
  await answer.locator('.code').getByRole('button', { name: 'Copy code' }).click()
  expect(await studio.page.evaluate(() => navigator.clipboard.readText())).toBe(code)
})

test('conversations survive a reload, also in the middle of an answer', async ({ studio }) => {
  await answerWith(studio.page, [{ content: 'an answer to keep' }])
  await studio.send('A question to keep')
  await studio.settled()
  await studio.button('New conversation').click()
  await expect(studio.questions).toHaveCount(0)
  await studio.page.reload()
  await studio.page.getByRole('navigation', { name: 'Conversations' }).getByText('A question to keep').click()
  await expect(studio.questions).toHaveText(/A question to keep/)
  await expect(studio.answers).toHaveText(/an answer to keep/)

  await studio.page.unroute('**/v1/chat/completions')
  await studio.page.route('**/v1/chat/completions', () => undefined) // never answered
  await studio.send('Unfinished')
  await expect(studio.answers.last()).toHaveAttribute('aria-busy', 'true')
  await studio.page.waitForTimeout(500) // the browser writes behind our back, and a loaded machine is slow at it
  await studio.page.reload()
  await expect(studio.questions.last()).toHaveText(/Unfinished/)
  await expect(studio.answers.last()).toHaveText(/Stopped/)
})

test('conversations can be renamed and deleted', async ({ studio }) => {
  await answerWith(studio.page, [{ content: 'ok' }])
  await studio.send('Old name')
  await studio.settled()
  const list = studio.page.getByRole('navigation', { name: 'Conversations' })
  await list.getByRole('button', { name: 'Old name', exact: true }).press('F2')
  await studio.page.getByRole('textbox', { name: 'Title of the conversation' }).fill('New name')
  await studio.page.keyboard.press('Enter')
  await list.getByRole('button', { name: 'Delete “New name”' }).click()
  await expect(list).toContainText('No conversations yet.')
})

for (const kind of ['JSON', 'Markdown']) {
  test(`export and import as ${kind} keep the conversation`, async ({ studio }) => {
    const call = { id: 'c-->1', name: 'look', arguments: '{"q":"<!-- --> -->"}' }
    const content = 'Line one\n\n<!-- chimere:user -->\n## You\nnot a message'
    await answerWith(studio.page, [{ reasoning: 'A thought', content, toolCalls: [call] }, { content: 'The end' }])
    await studio.openSettings()
    await studio.page.getByLabel('System prompt').fill('Be kind.')
    await studio.page.locator('form input[type=file]').setInputFiles([
      { name: 'a b.txt', mimeType: 'text/plain', buffer: Buffer.from('file text') },
    ])
    await studio.send('Exported question')
    await studio.page.getByRole('textbox', { name: 'Result', exact: true }).fill('found it')
    await studio.button('Give this result').click()
    await expect(studio.answers.last()).toContainText('The end')
    const exported = async () => {
      const [download] = await Promise.all([
        studio.page.waitForEvent('download'),
        studio.button(`Export (${kind})`).click(),
      ])
      return { path: (await download.path())!, name: download.suggestedFilename() }
    }
    const first = await exported()
    expect(first.name).toMatch(kind === 'JSON' ? /^exported-question\.json$/ : /^exported-question\.md$/)
    const buffer = readFileSync(first.path)
    await studio.page.locator('input[data-purpose=import]').setInputFiles([
      { name: first.name, mimeType: 'text/plain', buffer },
    ])
    await expect(studio.page.getByText('One conversation was imported.')).toBeVisible()
    await expect(studio.page.locator('.sidebar li')).toHaveCount(2)
    await expect(studio.answers.last()).toContainText('The end')
    const second = readFileSync((await exported()).path)
    const comparable = (text: string) =>
      kind === 'Markdown'
        ? text
        : JSON.parse(text).conversations.map(({ system, title, messages }: any) => ({
            system,
            title,
            messages: messages.map(({ id, speed, ...rest }: any) => rest),
          }))
    expect(comparable(second.toString())).toEqual(comparable(buffer.toString()))
  })
}

test('a thought that came from a file is not “0 tokens” long', async ({ studio, page }) => {
  await answerWith(page, [{ reasoning: 'A thought of some tokens', content: 'Done.' }])
  await studio.send('Think')
  await studio.settled()
  const label = await studio.button(/Thought for \d+ tokens/).innerText()
  expect(label).not.toContain(' 0 ')
  await studio.openSettings()
  for (const [kind, expected] of [['JSON', label], ['Markdown', 'Thoughts']] as const) {
    const download = page.waitForEvent('download')
    await studio.button(`Export (${kind})`).click()
    const buffer = readFileSync((await (await download).path())!)
    await page.locator('input[data-purpose=import]').setInputFiles([{ name: 'x', mimeType: 'text/plain', buffer }])
    await expect(studio.answers.getByRole('region', { name: 'Thinking' }).getByRole('button')).toHaveText(expected)
    await expect(page.getByText(/for 0 tokens/)).toHaveCount(0)
  }
})

test('only models that can chat are offered', async ({ page, server }) => {
  const models = [
    { id: 'talker', context_length: 4096, capabilities: ['completion', 'chat'] },
    { id: 'other-talker', context_length: 8192, capabilities: ['completion', 'chat'] },
    { id: 'embedder', context_length: 512, capabilities: ['embedding'], dimensions: 384 },
  ]
  await page.route('**/v1/models', (route) => route.fulfill({ json: { object: 'list', data: models } }))
  await page.goto(server.url)
  const studio = new Studio(page)
  const bodies = await answerWith(page, [{ content: 'ok' }])
  await studio.openSettings()
  await expect(page.getByRole('combobox', { name: 'Model' }).locator('option')).toHaveText(['talker', 'other-talker'])
  await studio.choose('Model', 'other-talker')
  await expect(page.locator('.panel')).toContainText('context of 8,192 tokens')
  await studio.send('Hello')
  await studio.settled()
  expect(bodies[0]!.model).toBe('other-talker')
  // A choice that the server does not have any more is the server's own again.
  models.splice(1, 1)
  await page.reload()
  await expect(page.locator('.model-name')).toHaveText('talker')
  await studio.send('Hello again')
  await studio.settled()
  expect(bodies[1]!.model).toBeUndefined()
})

test('a file that is no export is refused', async ({ studio }) => {
  await studio.page.locator('input[data-purpose=import]').setInputFiles([
    { name: 'other.json', mimeType: 'application/json', buffer: Buffer.from('{"a": 1}') },
  ])
  await expect(studio.page.getByText('other.json: expected conversations exported from this page')).toBeVisible()
})

test('an error of the server is shown in its own words', async ({ studio }) => {
  await studio.page.route('**/v1/chat/completions', (route) =>
    route.fulfill({ status: 400, json: { error: { message: 'the conversation is 99 tokens too long' } } }),
  )
  await studio.send('Too long')
  await expect(studio.answers).toContainText('the conversation is 99 tokens too long')
  await expect(studio.answers.getByRole('button', { name: 'Try again' })).toBeEnabled()
})

test('works with the keyboard alone', async ({ studio }) => {
  await answerWith(studio.page, [{ content: 'ok' }])
  await expect(studio.input).toBeFocused()
  await studio.page.keyboard.type('one')
  await studio.page.keyboard.press('Shift+Enter')
  await studio.page.keyboard.type('two')
  await studio.page.keyboard.press('Enter')
  await expect(studio.questions).toHaveText(/one\s*two/)
  await studio.settled()
  await studio.page.keyboard.press('Alt+n')
  await expect(studio.questions).toHaveCount(0)
  await expect(studio.input).toBeFocused()
})

test('speaks French', async ({ studio }) => {
  await studio.openSettings()
  await studio.choose('Language', 'fr')
  await expect(studio.page.getByRole('heading', { name: 'De quoi parlons-nous ?' })).toBeVisible()
  await expect(studio.page.locator('html')).toHaveAttribute('lang', 'fr')
})
