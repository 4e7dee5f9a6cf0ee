// The browser's console stays empty: what it says there is a defect, or hides one.
import type { Page } from '@playwright/test'
import { answerWith, expect, Studio, test } from './server'

// Playwright says something of its own where it blocks them.
test.use({ serviceWorkers: 'allow' })

function listen(page: Page): string[] {
  const said: string[] = []
  page.on('console', (message) => {
    if (['warning', 'error'].includes(message.type())) said.push(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => said.push(`exception: ${error.message}`))
  return said
}

const PREVIEWS: Record<string, string> = {
  html: '<h1>Hello</h1><script>document.body.append("there")</script>',
  svg: '<svg viewBox="0 0 10 10"><circle cx="5" cy="5" r="4"/></svg>',
  mermaid: 'graph TD\n  A[One] -->|then| B[Two]',
  csv: 'a,b\n1,2',
}

test('a fresh load, a chat, its settings and the status leave the console empty', async ({ page, server }) => {
  const said = listen(page)
  await page.goto(server.url)
  const studio = new Studio(page)
  await studio.send('What is 3 + 4?')
  await studio.settled()
  await studio.openSettings()
  await page.getByRole('link', { name: 'Status' }).click()
  await expect(page.locator('.plot canvas').last()).toBeVisible()
  expect(said).toEqual([])
})

test('previews and formulas leave the console empty', async ({ page, server }) => {
  const said = listen(page)
  await page.goto(server.url)
  const studio = new Studio(page)
  const blocks = Object.entries(PREVIEWS).map(([language, source]) => '```' + language + '\n' + source + '\n```')
  const formula = 'So $\\frac{a}{b}$ and $$\\begin{aligned}x &= \\color{red}{1}\\\\ y &= \\boxed{2}\\end{aligned}$$'
  await answerWith(page, [{ content: [...blocks, formula].join('\n\n') }])
  await studio.send('Show me')
  await studio.settled()
  for (let i = 0; i < blocks.length; i++) {
    await studio.button('Preview').nth(i).click()
    await expect(page.frameLocator('.artefact iframe').locator('h1, svg > circle, rect, td').first()).toBeVisible()
  }
  await expect(page.locator('math')).toHaveCount(2)
  expect(said).toEqual([])
})
