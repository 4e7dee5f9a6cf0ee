// An answer is on the screen while it is being written, also on a page that has been open for a while.
import type { Page } from '@playwright/test'
import { age, expect, Studio, test, type SlowChat } from './server'

// Received text may wait this long for the screen. Time in which the browser gave the page no frame does not count: a busy
// machine has such pauses, and no page can show anything in them.
const LIMIT_MS = 100
const FRAME_MS = 34 // two frames of a screen with 60: what is longer is a pause

// Every word has a number, so the last one on the screen says how much is shown, whatever Markdown made of it.
const numbers = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, i) => `w${String(first + i).padStart(4, '0')}`)

interface Sample {
  at: number
  shown: number // the number of the last word on the screen
}

interface Watched {
  arrivals: { at: number; received: number }[] // when the page read how many words
  samples: Sample[] // one after each frame
}

async function watch(page: Page) {
  await page.addInitScript(() => {
    const clock = () => performance.now()
    const watched: Watched = ((window as any).watched = { arrivals: [], samples: [] })
    const lastWord = (text: string) => Number(text.match(/w\d{4}/g)?.at(-1)?.slice(1) ?? 0)

    const plainFetch = window.fetch.bind(window)
    window.fetch = async (input, init) => {
      const response = await plainFetch(input, init)
      if (!String(input).includes('/chat/completions')) return response
      const decoder = new TextDecoder()
      let rest = ''
      let received = ''
      const seen = new TransformStream<Uint8Array, Uint8Array>({
        transform(bytes, stream) {
          const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
          rest = lines.pop()!
          for (const line of lines) {
            if (line.startsWith('data: {')) received += JSON.parse(line.slice(6)).choices[0]?.delta.content ?? ''
          }
          received = received.slice(received.lastIndexOf('w', received.length - 5))
          watched.arrivals.push({ at: clock(), received: lastWord(received) })
          stream.enqueue(bytes)
        },
      })
      return new Response(response.body!.pipeThrough(seen), response)
    }

    // After the frame: what was rendered in it is there, and is on the screen next.
    const frameEnded = new MessageChannel()
    frameEnded.port1.onmessage = () => {
      const text = document.querySelector('.assistant > .markdown')?.textContent ?? ''
      watched.samples.push({ at: clock(), shown: lastWord(text) })
    }
    const frame = () => {
      frameEnded.port2.postMessage(null)
      requestAnimationFrame(frame)
    }
    requestAnimationFrame(frame)
  })
}

// The longest that a word which had arrived was missing on the screen, pauses without frames left out.
function worstLag({ arrivals, samples }: Watched): number {
  let worst = 0
  let oldest = 0 // of the arrivals that are not shown in full
  for (const [i, { at, shown }] of samples.entries()) {
    while (oldest < arrivals.length && arrivals[oldest]!.received <= shown) oldest++
    const since = arrivals[oldest]?.at
    if (since === undefined || since > at) continue
    let paused = 0
    for (let k = i; k > 0 && samples[k]!.at > since; k--) {
      paused += Math.max(0, samples[k]!.at - Math.max(since, samples[k - 1]!.at) - FRAME_MS)
    }
    worst = Math.max(worst, at - since - paused)
  }
  return worst
}

// The text in tokens of five characters, on time whatever the timer's own delays are.
async function write(slow: SlowChat, text: string, perSecond: number) {
  const tokens = text.match(/[\s\S]{1,5}/g)!
  const began = Date.now()
  for (let sent = 0; sent < tokens.length; ) {
    const due = Math.min(tokens.length, Math.floor(((Date.now() - began) * perSecond) / 1000) + 1)
    if (due > sent) slow.write({ content: tokens.slice(sent, due).join('') })
    sent = due
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

async function stream(page: Page, slow: SlowChat, text: string, perSecond: number): Promise<Watched> {
  await age(page)
  await watch(page)
  await page.goto(slow.url)
  const studio = new Studio(page)
  await studio.send('Write')
  await expect.poll(() => slow.isAsked).toBe(true)
  await write(slow, text, perSecond)
  // Not ended yet: the last words must come by themselves.
  await expect(studio.answers).toHaveAttribute('aria-busy', 'true')
  await page.waitForTimeout(500)
  const watched: Watched = await page.evaluate(() => (window as any).watched)
  slow.end()
  await studio.settled()
  return watched
}

for (const perSecond of [10, 100]) {
  test(`on a page ten minutes old, ${perSecond} tokens a second are shown as they come`, async ({ page, slow }) => {
    const words = numbers(1, perSecond * 3)
    const watched = await stream(page, slow, words.join(' '), perSecond)
    expect(watched.arrivals.at(-1)!.received).toBe(words.length)
    expect(watched.samples.at(-1)!.shown).toBe(words.length)
    // It grew in steps, as it came.
    expect(new Set(watched.samples.map(({ shown }) => shown)).size).toBeGreaterThan(10)
    expect(worstLag(watched)).toBeLessThan(LIMIT_MS)
  })
}

test('a long answer with code and tables does not fall behind', async ({ page, slow }) => {
  let next = 1
  const take = (n: number) => numbers(next, (next += n) - 1)
  let text = ''
  while (text.length < 10_000) {
    text += `## ${take(1)}\n\n${take(60).join(' ')}\n\n`
    text += '```python\n' + take(20).map((word) => `print("${word}")\n`).join('') + '```\n\n'
    text += '| a | b |\n|---|---|\n' + take(20).map((word) => `| **${word}** | \`x\` |\n`).join('') + '\n'
    text += take(30).map((word) => `- *item* ${word}\n`).join('') + '\n'
  }
  const watched = await stream(page, slow, text, 400)
  expect(watched.samples.at(-1)!.shown).toBe(next - 1)
  expect(worstLag(watched)).toBeLessThan(LIMIT_MS)
})

// Browsers ring up to a millisecond before time. Here it is ten, so that each pause of the model is a chance to see it.
test('the last words before a pause are shown where timers ring early', async ({ page, slow }) => {
  await page.addInitScript(() => {
    const later = window.setTimeout.bind(window)
    window.setTimeout = ((call: () => void, delay = 0) => later(call, Math.max(0, delay - 10))) as typeof setTimeout
  })
  await page.goto(slow.url)
  const studio = new Studio(page)
  await studio.send('Write')
  await expect.poll(() => slow.isAsked).toBe(true)
  slow.write({ content: '| a | b |\n|---|---|\n' + '| **x** | `y` |\n'.repeat(200) }) // slow to render: the page rests
  for (let pause = 0; pause < 5; pause++) {
    const words = numbers(pause * 20 + 1, pause * 20 + 20)
    await write(slow, words.join(' ') + ' ', 400)
    await expect(studio.answers).toContainText(words.at(-1)!, { timeout: 10_000 })
  }
})
