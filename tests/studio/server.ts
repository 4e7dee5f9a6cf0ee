// server.ts  A real `chimere serve` with the model in the box, and the tests' view of the page.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request as ask, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test as base, type Locator, type Page } from '@playwright/test'

export class Server {
  private child: ChildProcess | null = null
  private output = ''
  url = ''

  constructor(
    private readonly options: string[] = [],
    private readonly kind: { hasDiskCache: boolean; env?: Record<string, string> } = { hasDiskCache: false },
  ) {}

  add(option: string) {
    this.options.push(option)
  }

  // What it has written to its terminal, once it has.
  async says(text: RegExp): Promise<RegExpExecArray> {
    await expect.poll(() => text.test(this.output)).toBe(true)
    return text.exec(this.output)!
  }

  async saysLast(text: RegExp): Promise<string> {
    await this.says(text)
    return this.output.match(new RegExp(text, 'g'))!.at(-1)!
  }

  // The same port as before when it was started before.
  async start() {
    // Variables named CHIMERE_ are options of the program: those of the tests are not for it.
    const { CHIMERE_API_KEY: _, CHIMERE_BINARY: _binary, CHIMERE_MODEL: _model, CHIMERE_SHARED: _shared, ...env } = process.env
    const port = this.url ? new URL(this.url).port : '0'
    const fixed = [process.env.CHIMERE_MODEL!, '--port', port]
    if (!this.kind.hasDiskCache) fixed.push('--no-disk-cache')
    const child = spawn(process.env.CHIMERE_BINARY!, ['serve', ...fixed, ...this.options], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...env, ...this.kind.env },
    })
    this.child = child
    this.output = ''
    this.url = await new Promise<string>((resolve, reject) => {
      let output = ''
      child.on('exit', (code) => reject(new Error(`chimere serve ended with ${code}: ${output}`)))
      child.stderr!.on('data', (bytes) => (output = (output + bytes).slice(-4000)))
      child.stdout!.on('data', (bytes) => {
        output += bytes
        this.output += bytes
        const ready = /(?:is|are) ready on (http:[^\s;]+)/.exec(output)
        if (ready) resolve(ready[1]!)
      })
    })
  }

  async stop() {
    if (!this.child) return
    const ended = once(this.child, 'exit')
    this.child.kill('SIGKILL')
    await ended
    this.child = null
  }
}

// One server for all tests that do not need their own.
export const test = base.extend<{ studio: Studio; slow: SlowChat }, { server: Server }>({
  server: [
    async ({}, use) => {
      const server = new Server()
      await server.start()
      await use(server)
      await server.stop()
    },
    { scope: 'worker' },
  ],
  slow: async ({ server }, use) => {
    const slow = new SlowChat(server)
    await slow.start()
    await use(slow)
    slow.stop()
  },
  studio: async ({ page, server }, use) => {
    await page.goto(server.url)
    await use(new Studio(page))
  },
})

// Makes the page, from its first script on, as old as one that has been open for ten minutes.
export function age(page: Page) {
  return page.addInitScript(() => {
    const clock = performance.now.bind(performance)
    performance.now = () => clock() + 600_000
  })
}

// The page in the words of its user.
export class Studio {
  readonly input: Locator
  readonly answers: Locator
  readonly questions: Locator

  constructor(readonly page: Page) {
    this.input = page.getByRole('textbox', { name: 'Write a message' })
    this.answers = page.getByRole('article', { name: 'Model' })
    this.questions = page.getByRole('article', { name: 'You' })
  }

  button(name: string | RegExp) {
    return this.page.getByRole('button', { name })
  }

  async send(text: string) {
    await this.input.fill(text)
    await this.button('Send').click()
  }

  // Until no answer is being written. The composer shows Send again only then.
  async settled() {
    await expect(this.button('Send')).toBeVisible()
    await expect(this.answers.last()).toHaveAttribute('aria-busy', 'false')
  }

  async choose(label: string, value: string) {
    await this.page.getByRole('combobox', { name: label }).selectOption(value)
  }

  async openSettings() {
    await this.page.locator('header.top').getByRole('button', { name: 'Settings' }).click()
    await expect(this.page.getByRole('complementary', { name: 'Settings' })).toBeVisible()
  }
}

// The real server with a chat that the test itself writes, piece by piece, for as long as it likes.
export class SlowChat {
  readonly requestId = 'req-slow-chat'
  readonly stopped: string[] = [] // ids of thoughts that the page asked to end
  readonly approvals: { id: string; allow: boolean }[] = [] // that the page gave
  hasLeft = false // the page has closed the stream
  url = ''
  private response: ServerResponse | null = null
  private readonly http = createServer((request, response) => this.handle(request, response))

  constructor(private readonly server: Server) {}

  async start() {
    await new Promise<void>((resolve) => this.http.listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${(this.http.address() as AddressInfo).port}`
  }

  stop() {
    this.http.closeAllConnections()
    this.http.close()
  }

  write(reply: Reply) {
    this.response!.write(deltas(reply))
  }

  // Whatever else a chunk may have, with a delta.
  tell(more: object, delta: object = {}) {
    const choices = [{ index: 0, delta, finish_reason: null }]
    this.response!.write(`data: ${JSON.stringify({ choices, ...more })}\n\n`)
  }

  // How much of the prompt is read.
  progress(total: number, processed: number) {
    this.tell({ prompt_progress: { total, cache: 0, processed } })
  }

  end(finish = 'stop') {
    this.response!.end(chunk({}, finish) + 'data: [DONE]\n\n')
    this.response = null
  }

  private handle(request: IncomingMessage, response: ServerResponse) {
    const stop = /^\/v1\/requests\/([^/]+)\/stop_thinking$/.exec(request.url!)
    if (stop) {
      this.stopped.push(stop[1]!)
      response.end('{}')
    } else if (request.url!.startsWith('/v1/odo/approvals/')) {
      const id = request.url!.split('/').at(-1)!
      request.on('data', (body) => this.approvals.push({ id, ...JSON.parse(body) }))
      request.on('end', () => response.end('{}'))
    } else if (request.url === '/v1/chat/completions') {
      this.response = response
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'X-Request-Id': this.requestId })
      response.flushHeaders()
      response.on('close', () => (this.hasLeft = !response.writableFinished))
    } else {
      const { method, headers } = request
      const onward = ask(this.server.url + request.url, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode!, answer.headers)
        answer.pipe(response)
      })
      request.pipe(onward)
    }
  }

  // Whether the page's request has come.
  get isAsked() {
    return this.response !== null
  }
}

export interface Reply {
  reasoning?: string
  content?: string
  toolCalls?: { id: string; name: string; arguments: string }[]
  certainty?: string[] // tokens with half a certainty each
  others?: Record<string, string[]> // what else a token might have been
  bytes?: Record<string, number[]>
  guessed?: string[] // of these
}

function chunk(delta: object, finish: string | null = null, more: object = {}): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish, ...more }] })}\n\n`
}

// Pieces of a few characters, as a model writes them.
const pieces = (text: string) => text.match(/[\s\S]{1,5}/g) ?? []

function deltas(reply: Reply): string {
  return [
    ...pieces(reply.reasoning ?? '').map((text) => chunk({ reasoning_content: text })),
    ...pieces(reply.content ?? '').map((text) => chunk({ content: text })),
    ...(reply.toolCalls ?? []).map(({ id, name, arguments: args }, index) =>
      chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }] }),
    ),
  ].join('')
}

function logprobs({ certainty = [], others = {}, bytes = {} }: Reply): object {
  const content = certainty.map((token) => ({
    token,
    logprob: Math.log(0.5),
    bytes: bytes[token] ?? [...Buffer.from(token)],
    top_logprobs: [token, ...(others[token] ?? [])].map((other, i) => ({ token: other, logprob: Math.log(0.5 / (i + 1)) })),
  }))
  return Object.keys(others).length ? { logprobs: { content } } : {}
}

export function events(reply: Reply): string {
  const usage = { prompt_tokens: 10, completion_tokens: 20, prompt_tokens_details: { cached_tokens: 4 } }
  const stats = (reply.certainty ?? []).map((token) => ({
    token,
    certainty: 0.5,
    entropy: 1,
    ...(reply.guessed?.includes(token) ? { guessed: true } : {}),
  }))
  return [
    deltas(reply),
    ...(stats.length ? [chunk({}, null, { token_stats: stats, ...logprobs(reply) })] : []),
    chunk({}, reply.toolCalls?.length ? 'tool_calls' : 'stop'),
    `data: ${JSON.stringify({ choices: [], usage })}\n\n`,
    'data: [DONE]\n\n',
  ].join('')
}

// Answers the next requests of the page with these texts instead of the model's; returns what the page sent.
export async function answerWith(page: Page, replies: Reply[]): Promise<Record<string, any>[]> {
  const bodies: Record<string, any>[] = []
  await page.route('**/v1/chat/completions', async (route) => {
    bodies.push(route.request().postDataJSON())
    const reply = replies[Math.min(bodies.length, replies.length) - 1]!
    await route.fulfill({ status: 200, contentType: 'text/event-stream', body: events(reply) })
  })
  return bodies
}

export { expect }
