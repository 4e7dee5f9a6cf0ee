// Model text never becomes script, loads nothing, and stays inside its message.
import type { Page } from '@playwright/test'
import { answerWith, expect, test } from './server'
import { payloads } from './payloads'

// Everything that would betray a payload that got through.
async function watch(page: Page, origin: string) {
  const found: string[] = []
  page.on('dialog', (dialog) => {
    found.push(`dialog ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(origin) && !url.startsWith('data:image/') && !url.startsWith('blob:')) found.push(`request ${url}`)
  })
  page.on('framenavigated', (frame) => {
    if (frame === page.mainFrame() && !frame.url().startsWith(origin)) found.push(`navigation ${frame.url()}`)
  })
  await page.exposeFunction('betray', (what: string) => found.push(what))
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => {
      ;(window as any).betray(`policy ${event.violatedDirective} ${event.blockedURI} ${event.sample}`)
    })
  })
  return found
}

// Moves over, focuses and clicks everything the model wrote, then lists what should not be there.
async function provoke(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const wrong: string[] = []
    for (const root of document.querySelectorAll('.markdown')) {
      for (const element of root.querySelectorAll<HTMLElement>('*')) {
        if (element.closest('button')) continue
        for (const name of ['mouseover', 'mouseenter', 'focus', 'toggle', 'load', 'error', 'animationstart']) {
          element.dispatchEvent(new Event(name, { bubbles: true }))
        }
        if (!element.hasAttribute('href')) element.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }))
        // Formulas are MathML and nothing else, and MathML is nowhere else.
        const isMath = element.namespaceURI === 'http://www.w3.org/1998/Math/MathML'
        if (isMath !== (element.parentElement!.closest('.formula') !== null)) wrong.push(`element ${element.tagName}`)
        if (/^(script|iframe|object|embed|link|style|form|meta|base|svg|template|video|audio|annotation-xml)$/i.test(element.tagName)) {
          wrong.push(`element ${element.tagName}`)
        }
        const { top, bottom } = element.getBoundingClientRect()
        if (isMath && bottom - top > 5000) wrong.push('a formula of many screens')
        for (const { name, value } of element.attributes) {
          const isBad =
            name.startsWith('on') ||
            (name === 'style' && (/url|fixed/i.test(value) || (!element.closest('.code') && !isMath))) ||
            (name === 'href' && !/^(https?:|mailto:)/i.test(value)) ||
            (name === 'src' && !/^data:image\/(png|jpeg|gif|webp);base64,/i.test(value)) ||
            ['srcset', 'srcdoc', 'action', 'formaction', 'ping', 'poster', 'id', 'name'].includes(name)
          if (isBad) wrong.push(`attribute ${name}=${value}`)
        }
      }
    }
    if ('pwned' in window) wrong.push('script ran')
    return wrong
  })
}

test('200 hostile payloads as answers, thoughts, calls, titles and file names', async ({ page, server }) => {
  expect(payloads.length).toBeGreaterThanOrEqual(200)
  const found = await watch(page, server.url)
  await page.route('**/v1/models', (route) =>
    route.fulfill({ json: { data: [{ id: payloads[6], context_length: 1000 }] } }),
  )
  await page.goto(server.url)
  const messages = payloads.flatMap((payload, i) => [
    { role: 'user', content: payload, files: [{ name: payload, text: payload }] },
    {
      role: 'assistant',
      content: payload,
      reasoning: payload,
      toolCalls: [{ id: `c${i}`, name: payload, arguments: payload }],
    },
    { role: 'tool', toolCallId: `c${i}`, content: payload },
  ])
  const conversation = { title: payloads[6], system: payloads[0], messages, created: 1, updated: 1 }
  const file = { format: 'chimere-conversations', version: 1, conversations: [conversation] }
  await page.locator('input[data-purpose=import]').setInputFiles([
    { name: 'hostile.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(file)) },
  ])
  await expect(page.getByRole('article', { name: 'Model' })).toHaveCount(payloads.length)
  await page.evaluate(() => document.querySelectorAll<HTMLElement>('.thinking button').forEach((button) => button.click()))
  await expect(page.locator('.thinking .markdown')).toHaveCount(payloads.length)
  await expect(page.locator('.model-name')).toHaveText(payloads[6]!)
  await expect(page.locator('.formula').first()).toBeAttached()
  expect(await provoke(page)).toEqual([])
  expect(found).toEqual([])
})

test('hostile text streamed in pieces', async ({ page, server }) => {
  const found = await watch(page, server.url)
  await page.goto(server.url)
  const content = payloads.map((payload, i) => `Number ${i}\n\n${payload}`).join('\n\n')
  await answerWith(page, [{ content, reasoning: content }])
  await page.getByRole('textbox', { name: 'Write a message' }).fill('Attack')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('button', { name: /Thought for|Thinking/ }).click()
  await expect(page.getByRole('article', { name: 'Model' })).toHaveAttribute('aria-busy', 'false')
  expect(await provoke(page)).toEqual([])
  expect(found).toEqual([])
})

test('the policy of the page would stop what the sanitiser missed', async ({ page, server }) => {
  await page.goto(server.url)
  const violations = await page.evaluate(async () => {
    const seen: string[] = []
    addEventListener('securitypolicyviolation', (event) => seen.push(event.violatedDirective))
    const settled = async (directive: string) => {
      while (!seen.some((name) => name.startsWith(directive))) await new Promise((resolve) => setTimeout(resolve, 10))
    }
    const script = document.createElement('script')
    script.append('window.pwned = 1')
    document.body.append(script)
    try {
      document.createElement('div').innerHTML = '<img src=x onerror="window.pwned=1">'
    } catch {
      seen.push('refused')
    }
    const image = new Image()
    image.src = 'http://elsewhere.invalid/i.png'
    await settled('img-src')
    await fetch('http://elsewhere.invalid/').catch(() => undefined)
    await settled('connect-src')
    return { seen, ran: 'pwned' in window }
  })
  expect(violations.ran).toBe(false)
  expect(violations.seen).toContain('refused')
})
