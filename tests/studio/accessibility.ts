// accessibility.ts  What axe-core has to say about a screen.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect, type Page } from '@playwright/test'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

// Serious and critical findings alone.
export async function problems(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate(async () => {
    const { violations } = await (window as any).axe.run(document, { iframes: false })
    return violations
      .filter((v: any) => v.impact === 'serious' || v.impact === 'critical')
      .flatMap((v: any) => v.nodes.map((node: any) => `${v.id}: ${node.target} ${node.failureSummary}`))
  })
}

// In both themes and on a phone: nothing to find, and nothing wider than the page.
export async function looksRight(page: Page, name: string) {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(await problems(page), `${name}, ${colorScheme}`).toEqual([])
  }
  const size = page.viewportSize()!
  await page.setViewportSize({ width: 360, height: 740 })
  expect(await problems(page), `${name}, phone`).toEqual([])
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), name).toBeLessThanOrEqual(0)
  await page.setViewportSize(size)
}
