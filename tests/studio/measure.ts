// measure.ts  Figures, run by hand: STUDIO_RUN=measure tests/studio/run
// First paint with nothing cached, and the frames while an answer of 10,000 tokens arrives at 500 tokens a second. The time
// that the page's main thread computes for a frame says what is left on a busy machine: 33 ms would be 30 frames a second.
import { createServer, request as ask, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, Studio, test } from './server'
import { sampleAnswer } from './sample'

const TOKENS = 10_000
const PER_SECOND = 500

const median = (list: number[]) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)]!

test('first paint', async ({ browser, server }) => {
  const times: number[] = []
  for (let i = 0; i < 7; i++) {
    const context = await browser.newContext()
    const page = await context.newPage()
    await page.goto(server.url)
    const paint = () =>
      page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null)
    await expect.poll(paint).not.toBeNull()
    times.push((await paint())!)
    await context.close()
  }
  console.log(`first paint: median ${median(times).toFixed(0)} ms, all ${times.map((t) => t.toFixed(0)).join(' ')}`)
})

// Tokens of about four characters, on time whatever the timer's own delays are.
async function stream(response: ServerResponse) {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  const text = sampleAnswer.repeat(Math.ceil((TOKENS * 4) / sampleAnswer.length))
  const began = Date.now()
  for (let sent = 0; sent < TOKENS; ) {
    const due = Math.min(TOKENS, Math.floor(((Date.now() - began) * PER_SECOND) / 1000) + 1)
    let events = ''
    for (; sent < due; sent++) {
      const content = text.slice(sent * 4, sent * 4 + 4)
      events += `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
    }
    response.write(events)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  response.end('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
}

test('frames while 10,000 tokens arrive', async ({ page, server }) => {
  const proxy = createServer((request, response) => {
    if (request.url === '/v1/chat/completions') return void stream(response)
    const onward = ask(server.url + request.url, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    request.pipe(onward)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  await page.goto(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`)
  const studio = new Studio(page)
  await page.evaluate(() => {
    const frames: number[] = ((window as any).frames_ = [])
    const tick = (at: number) => {
      frames.push(at)
      requestAnimationFrame(tick)
    }
    requestAnimationFrame(tick)
  })
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const computed = async () =>
    (await session.send('Performance.getMetrics')).metrics.find((metric) => metric.name === 'TaskDuration')!.value * 1000
  await studio.send('Write a lot')
  // Plain questions, rarely asked: looking for roles costs the page more than the answer does.
  const isBusy = (wanted: string) =>
    page.waitForFunction((w) => document.querySelector('.assistant')?.getAttribute('aria-busy') === w, wanted, {
      polling: 500,
      timeout: 100_000,
    })
  await isBusy('true')
  await page.evaluate(() => ((window as any).frames_.length = 0))
  const before = await computed()
  await isBusy('false')
  const cost = (await computed()) - before
  const frames = await page.evaluate(() => (window as any).frames_ as number[])
  const seconds = new Map<number, number>()
  for (const at of frames) seconds.set(Math.floor((at - frames[0]!) / 1000), (seconds.get(Math.floor((at - frames[0]!) / 1000)) ?? 0) + 1)
  const rates = [...seconds.values()].slice(0, -1)
  const gaps = frames.slice(1).map((at, i) => at - frames[i]!)
  console.log(
    `frames a second: lowest ${Math.min(...rates)}, median ${median(rates)}, over ${rates.length} s; ` +
      `longest gap ${Math.max(...gaps).toFixed(0)} ms; main thread ${(cost / frames.length).toFixed(1)} ms a frame`,
  )
  proxy.closeAllConnections()
  proxy.close()
})
