// A full context is not the end of a conversation.
import type { Page } from '@playwright/test'
import { problems } from './accessibility'
import { answerWith, expect, Server, Studio, test } from './server'
import { test as alone } from '@playwright/test'

const GO_ON = 'Go on without the oldest messages'

// As the server says it; the figures came later than the code.
const tooLong = (figures: object) => ({
  status: 400,
  json: { error: { message: 'This model’s maximum context length is 100 tokens.', code: 'context_length_exceeded', ...figures } },
})

// Answers with `content` until the messages have more than `room` characters, then refuses.
async function boundedServer(page: Page, room: number, figures: boolean) {
  const bodies: Record<string, any>[] = []
  await page.route('**/v1/chat/completions', async (route) => {
    const body = route.request().postDataJSON()
    const length = body.messages.reduce((sum: number, m: any) => sum + m.content.length, 0)
    if (length > room) return route.fulfill(tooLong(figures ? { n_prompt_tokens: length / 4, n_ctx: room / 4 } : {}))
    bodies.push(body)
    await route.fallback()
  })
  return bodies
}

for (const figures of [true, false]) {
  test(`a conversation that does not fit any more goes on, figures told: ${figures}`, async ({ studio, page }) => {
    await answerWith(page, [{ content: 'a'.repeat(100) }])
    const bodies = await boundedServer(page, 700, figures)
    await studio.openSettings()
    await page.getByLabel('System prompt').fill('Be kind.')
    for (let turn = 1; turn <= 5; turn++) {
      await studio.send(`Question ${turn} ${'q'.repeat(50)}`)
      await studio.settled()
    }
    const notice = studio.answers.last()
    await expect(notice).toContainText('The conversation no longer fits into the model’s context')
    if (figures) await expect(notice).toContainText('of 175 tokens')
    await expect(page.getByRole('note')).toHaveCount(0)
    await studio.button(GO_ON).click()
    await studio.settled()
    await expect(studio.answers.last()).toContainText('aaaa')
    await expect(studio.answers).toHaveCount(5)
    await expect(studio.questions).toHaveCount(5)

    // What is sent begins at a question, keeps the system prompt, and the page shows where.
    const sent = bodies.at(-1)!.messages
    expect(sent[0]).toEqual({ role: 'system', content: 'Be kind.' })
    expect(sent[1].role).toBe('user')
    expect(sent.at(-1).content).toContain('Question 5')
    expect(sent.map((m: any) => m.content).join()).not.toContain('Question 1')
    const mark = page.getByRole('note')
    await expect(mark).toContainText('What is sent to the model begins here')
    const first = Number(/Question (\d)/.exec(sent[1].content)![1])
    const tops = async () => [
      (await studio.questions.nth(first - 2).boundingBox())!.y,
      (await mark.boundingBox())!.y,
      (await studio.questions.nth(first - 1).boundingBox())!.y,
    ]
    const order = await tops()
    expect(order).toEqual([...order].sort((a, b) => a - b))

    // It stays so over a reload, and the next question goes through by itself.
    await page.reload()
    await expect(mark).toBeVisible()
    await studio.send('Question 6')
    await studio.settled()
    await expect(studio.answers.last()).toContainText('aaaa')
    expect(bodies.at(-1)!.messages[1].content).toContain(`Question ${first}`)
    await studio.button('Include them again').click()
    await expect(mark).toHaveCount(0)
  })
}

test('a single message that is too long says so, and can be edited', async ({ studio, page }) => {
  await answerWith(page, [{ content: 'short enough' }])
  await boundedServer(page, 100, true)
  await studio.send('x'.repeat(500))
  await expect(studio.answers).toContainText('This message alone fills the model’s context of 25 tokens.')
  await expect(studio.button(GO_ON)).toHaveCount(0)
  await studio.questions.getByRole('button', { name: 'Edit' }).click()
  await page.getByRole('textbox', { name: 'Edit' }).fill('x')
  await studio.button('Save and send').click()
  await expect(studio.answers).toContainText('short enough')
})

test('editing what is not sent any more sends it again', async ({ studio, page }) => {
  await answerWith(page, [{ content: 'a'.repeat(100) }])
  const bodies = await boundedServer(page, 350, true)
  for (let turn = 1; turn <= 3; turn++) {
    await studio.send(`Question ${turn} ${'q'.repeat(50)}`)
    await studio.settled()
  }
  const isReadable = async (what: string) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await problems(page), `${what}, ${colorScheme}`).toEqual([])
    }
  }
  await isReadable('the offer')
  await studio.button(GO_ON).click()
  await studio.settled()
  await expect(page.getByRole('note')).toBeVisible()
  await isReadable('the mark')
  await studio.questions.first().getByRole('button', { name: 'Edit' }).click()
  await page.getByRole('textbox', { name: 'Edit' }).fill('Another beginning')
  await studio.button('Save and send').click()
  await studio.settled()
  await expect(page.getByRole('note')).toHaveCount(0)
  expect(bodies.at(-1)!.messages).toEqual([{ role: 'user', content: 'Another beginning' }])
})

// The real server with a small context: the conversation is carried past it, as often as it takes.
alone('the real model talks past its context', async ({ page }) => {
  const server = new Server(['--ctx', '512'])
  await server.start()
  try {
    await page.goto(server.url)
    const studio = new Studio(page)
    await studio.openSettings()
    await studio.choose('Thinking', 'off')
    await page.getByLabel('Longest answer, tokens').fill('60')
    const filler = 'The quick brown fox jumps over the lazy dog near the old river bank. '.repeat(6)
    let times = 0
    for (let turn = 1; turn <= 6; turn++) {
      await studio.send(`${filler} This was text ${turn}. What is 2 plus 3?`)
      await studio.settled()
      while (await studio.button(GO_ON).count()) {
        expect(++times).toBeLessThan(20)
        await studio.button(GO_ON).click()
        await studio.settled()
      }
      await expect(studio.answers.locator('.problem, .offer')).toHaveCount(0)
    }
    expect(times).toBeGreaterThan(0)
    await expect(studio.questions).toHaveCount(6)
    await expect(page.getByRole('note')).toHaveCount(1)
  } finally {
    await server.stop()
  }
})

// Ten thousand letters: more than the context below holds.
const times = (rule: string) => Array(10).fill(rule).join(' ')
const LONG = `root ::= ${times('a')}\na ::= ${times('b')}\nb ::= ${times('c')}\nc ::= ${times('d')}\nd ::= [a-z ]\n`

// An answer that runs into the end of the context.
alone('an answer that fills the context says so, and there is a way on', async ({ page }) => {
  const server = new Server(['--ctx', '256'])
  await server.start()
  try {
    await page.goto(server.url)
    const studio = new Studio(page)
    await studio.openSettings()
    await studio.choose('Thinking', 'off')
    // The first turn has so few letters that the second is nearly all of what is sent, whatever is drawn there.
    let bound: object | null = { grammar: 'root ::= "5"\n' }
    const bodies: Record<string, any>[] = []
    await page.route('**/v1/chat/completions', (route) => {
      const body = route.request().postDataJSON()
      bodies.push(body)
      return route.continue({ postData: JSON.stringify({ ...body, ...bound }) })
    })
    await studio.send('2 + 3')
    await studio.settled()
    bound = { grammar: LONG, max_tokens: 100000, thinking_control: { loop_guard: false } }
    await studio.send('Count without end.')
    await studio.settled()
    const answer = studio.answers.last()
    await expect(answer).toContainText('The model’s context of 256 tokens is full.')
    bound = null
    // This turn alone fills it, so the next one begins anew.
    await studio.button(GO_ON).click()
    await expect(page.getByRole('note')).toBeVisible()
    await expect(studio.button(GO_ON)).toHaveCount(0)
    await studio.send('What is 4 plus 5?')
    await studio.settled()
    expect(bodies.at(-1)!.messages).toEqual([{ role: 'user', content: 'What is 4 plus 5?' }])
    await expect(studio.answers.last().locator('.problem, .offer')).toHaveCount(0)
  } finally {
    await server.stop()
  }
})

test('an answer that broke off at the end of the context goes on where it was', async ({ studio, page, server }) => {
  const context = (await (await page.request.get(`${server.url}/v1/models`)).json()).data[0].context_length
  const bodies: Record<string, any>[] = []
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
  await page.route('**/v1/chat/completions', async (route) => {
    bodies.push(route.request().postDataJSON())
    const isFull = bodies.length === 2
    const usage = { prompt_tokens: isFull ? context - 2 : 20, completion_tokens: 2 }
    const body =
      chunk({ content: ['old '.repeat(200), 'It goes', ' on and ends.'][bodies.length - 1] }) +
      chunk({}, isFull ? 'length' : 'stop') +
      `data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`
    await route.fulfill({ status: 200, contentType: 'text/event-stream', body })
  })
  await studio.send('First')
  await studio.settled()
  await studio.send('Second')
  await studio.settled()
  await expect(studio.answers.last()).toContainText('context of 16,384 tokens is full.')
  await studio.button(GO_ON).click()
  await expect(studio.answers.last()).toContainText('It goes on and ends.')
  await expect(studio.answers.last().locator('.problem, .offer')).toHaveCount(0)
  await expect(studio.answers).toHaveCount(2)
  expect(bodies[2]!.messages).toEqual([
    { role: 'user', content: 'Second' },
    { role: 'assistant', content: 'It goes' },
  ])
})
