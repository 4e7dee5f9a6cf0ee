// screens.ts  Pictures of every screen, run by hand: STUDIO_RUN=screens tests/studio/run
import { answerWith, expect, test } from './server'
import { sampleAnswer } from './sample'

const SIZES = [
  { name: 'desktop', width: 1280, height: 800 },
  { name: 'phone', width: 390, height: 844 },
]

for (const theme of ['light', 'dark'] as const) {
  for (const { name, width, height } of SIZES) {
    test(`${theme} ${name}`, async ({ studio, page }) => {
      await page.emulateMedia({ colorScheme: theme })
      await page.setViewportSize({ width, height })
      const shoot = (screen: string) => page.screenshot({ path: `screens/${screen}-${theme}-${name}.png` })
      await shoot('empty')
      const call = { id: 'c1', name: 'weather', arguments: '{"city": "Paris", "days": 3}' }
      await answerWith(page, [
        { reasoning: 'The question is about layers. I should be brief and show code.', content: sampleAnswer },
        { reasoning: 'I need the forecast.', toolCalls: [call] },
      ])
      await studio.send('Explain recurrent layers in one page, with code.')
      await studio.settled()
      await expect(page.locator('.hljs-keyword').first()).toBeVisible()
      await page.locator('.scroller').evaluate((box) => (box.scrollTop = 0))
      await shoot('chat')
      await page.locator('.scroller').evaluate((box) => (box.scrollTop = box.scrollHeight))
      await shoot('chat-end')
      await page.getByRole('button', { name: 'Preview' }).first().click()
      await expect(page.frameLocator('.artefact iframe').locator('svg')).toBeVisible()
      await page.locator('.scroller').evaluate((box) => (box.scrollTop = 0))
      await shoot('artefact')
      await page.keyboard.press('Escape')
      await studio.send('How will the weather be?')
      await expect(page.getByRole('region', { name: 'Tool call: weather' })).toBeVisible()
      await page.getByRole('button', { name: /Thought for/ }).last().click()
      await shoot('tool')
      await studio.openSettings()
      await shoot('settings')
      await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
      if (name === 'phone') {
        await page.getByRole('button', { name: 'Conversations' }).click()
        await shoot('menu')
        await page.getByRole('button', { name: 'Conversations' }).click()
      }
      await page.unroute('**/v1/chat/completions')
      await page.getByRole('link', { name: 'Status' }).click()
      // Some work to look at: many short answers after each other, and some that share their beginning.
      await page.evaluate(async () => {
        const one = async (i: number) => {
          for (let turn = 0; turn < 4; turn++) {
            const content = `Tell me a short story, number ${(i + turn) % 5}.`
            const body = JSON.stringify({ messages: [{ role: 'user', content }], max_tokens: 120 + 40 * i })
            await fetch('/v1/chat/completions', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
          }
        }
        void Promise.all(Array.from({ length: 3 }, (_, i) => one(i)))
      })
      const samples = page.locator('.plot .canvas').first()
      await expect.poll(async () => Number(await samples.getAttribute('data-samples'))).toBeGreaterThan(8)
      await shoot('status')
      await page.locator('.status').evaluate((box) => (box.scrollTop = box.scrollHeight))
      await shoot('status-end')
    })
  }
}
