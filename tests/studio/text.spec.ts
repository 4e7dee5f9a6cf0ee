// How text of an answer looks: tables and formulas.
import type { Page } from '@playwright/test'
import { answerWith, expect, test } from './server'

const SIZES = [
  { name: 'desktop', width: 1280, height: 800 },
  { name: 'phone', width: 360, height: 740 },
]

// Words of table cells that stand on more than one line.
const brokenWords = (page: Page) =>
  page.evaluate(() => {
    const broken: string[] = []
    for (const cell of document.querySelectorAll('.markdown th, .markdown td')) {
      const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
      while (texts.nextNode()) {
        for (const { 0: word, index } of texts.currentNode.textContent!.matchAll(/[^\s-]+/g)) {
          const range = document.createRange()
          range.setStart(texts.currentNode, index)
          range.setEnd(texts.currentNode, index + word.length)
          if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word)
        }
      }
    }
    return broken
  })

const WIDE = `| Architecture | Recurrence | Consideration | Internationalisation | Responsibility | Characteristics |
|---|---|---|---|---|---|
| Gated DeltaNet | matrix-valued | \`forget_then_correct()\` | untranslatable | [documentation](https://example.org) | **straightforward** |
| Attention | none | quadratic in the context | untranslatable | nobody in particular | well understood |`

for (const { name, width, height } of SIZES) {
  test(`tables keep words whole and scroll in their own box, ${name}`, async ({ studio, page }) => {
    await page.setViewportSize({ width, height })
    const narrow = '| Word | Meaning |\n|---|---|\n| Incomprehensibilities | things that nobody understands at all |'
    const endless = `| Key | Value |\n|---|---|\n| hash | ${'0123456789abcdef'.repeat(12)} |`
    await answerWith(page, [{ content: [narrow, WIDE, endless].join('\n\n') }])
    await studio.send('Three tables')
    await studio.settled()
    const broken = await brokenWords(page)
    expect(broken.filter((word) => word.length < 30)).toEqual([])
    const boxes = await page.evaluate(() =>
      [...document.querySelectorAll('.table-scroller')].map((box) => ({
        isInside: box.getBoundingClientRect().right <= box.closest('.markdown')!.getBoundingClientRect().right + 1,
        scrolls: box.scrollWidth > box.clientWidth,
        width: box.scrollWidth,
      })),
    )
    expect(boxes.map(({ isInside }) => isInside)).toEqual([true, true, true])
    if (name === 'phone') expect(boxes[1]!.scrolls).toBe(true)
    // One endless word does not make the table endless.
    expect(boxes[2]!.width).toBeLessThan(900)
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)
  })
}
