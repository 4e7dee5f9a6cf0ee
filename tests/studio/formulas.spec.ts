// Formulas: which text is one, and how it is shown.
import { extractFormulas } from '../../studio/src/markdown/formulas'
import { answerWith, expect, Studio, test } from './server'

const found = (source: string, isGrowing = false) =>
  extractFormulas(source, isGrowing).formulas.map(({ tex, isBlock }) => (isBlock ? [tex] : tex))

test.describe('what is a formula', () => {
  for (const [source, expected] of [
    ['Euler: $e^{i\\pi} = -1$.', ['e^{i\\pi} = -1']],
    ['$x$, $2x + 3$ and $5$', ['x', '2x + 3', '5']],
    ['$$\\int_0^1 x\\,dx$$', [['\\int_0^1 x\\,dx']]],
    ['$$\na = b\n+ c\n= d\n$$', [['\na = b\n+ c\n= d\n']]],
    ['so \\(a_1 * b_1\\) and \\[c\\]', ['a_1 * b_1', ['c']]],
    ['$\\text{price in \\$}$', ['\\text{price in \\$}']],
    ['| $|x|$ | $y$ |', ['|x|', 'y']],
    ['$3 \\text{ apples and } 4$', ['3 \\text{ apples and } 4']],
    // Money, variables of a shell, citations
    ['It costs $5 and $10.', []],
    ['$5-$10, $5/$10, US$5 or CA$7', []],
    ['I paid $5, or 5$ as they say', []],
    ['between $1,000 and $2,000 a month', []],
    ['echo $HOME/$USER and $PATH', []],
    ['\\$5 and \\$6', []],
    ['as shown in \\[1\\] and \\[2, 3\\]', []],
    ['a lone $ and another $ sign', []],
    // Code and addresses
    ['`$x$` and ``a ` $y$``', []],
    ['- item\n  ```sh\n  echo $a$ \\(b\\)\n  ```\n- $z$', ['z']],
    ['~~~\n$x$\n~~~', []],
    ['https://example.org/?a=$x$ and [a](/b$c$)', []],
    // No paragraph ends inside of one
    ['$a\n\nb$ and \\(c\n\nd\\)', []],
    ['no end \\(a and $$b', []],
  ] as [string, unknown[]][]) {
    test(source.replace(/\s+/g, ' '), () => expect(found(source)).toEqual(expected))
  }

  test('text around formulas is left as it was', () => {
    const { text, formulas } = extractFormulas('a *b* $c*d$ `$e$` \\\\ $5 \\(f\\)', false)
    expect(text.replace(/\uFDD0(\d+)\uFDD1/g, (_, i) => formulas[i]!.source)).toBe('a *b* $c*d$ `$e$` \\\\ $5 \\(f\\)')
  })
})

// What is shown for each beginning of a text as it grows: a formula, once there, stays; before, its source stands as it
// is written, without Markdown in it.
test('a formula that is being written does not flicker', () => {
  for (const source of ['Let $a_1 * b_1 * c$ be', 'So \\(x_1 * y_1\\) and', '$$\n\\frac{a}{b}\n$$\n\ndone', 'It is $5-$10 or $7.']) {
    let most = 0
    for (let n = 1; n <= source.length; n++) {
      const { text, formulas } = extractFormulas(source.slice(0, n), true)
      const whole = formulas.filter(({ tex }) => tex !== null).length
      expect(whole, source.slice(0, n)).toBeGreaterThanOrEqual(most)
      most = whole
      if (text.includes('*')) expect(text).not.toMatch(/\*[^*]*\*/)
    }
    expect(most).toBe(source.includes('$5') ? 0 : 1)
  }
})

const SAMPLE = `The roots are $x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}$, and \\(a \\ne 0\\). It costs $5 and $10.

$$
\\begin{aligned}
f(x) &= \\sum_{i=1}^{n} i^2 \\\\
     &= \\frac{n(n+1)(2n+1)}{6}
\\end{aligned}
$$

- in a list \\[ \\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix} \\]
- \`$code$\` stays, and so does $\\nosuchcommand{x}$

Code:

    $indented$ code

| formula | value |
|---|---|
| $|x|$ | \\(\\infty\\) |
`

test('formulas are drawn, money and code are not', async ({ studio }) => {
  await answerWith(studio.page, [{ content: SAMPLE, reasoning: 'Think $x^2$' }])
  await studio.send('Roots?')
  await studio.settled()
  const answer = studio.answers.locator('.markdown').last()
  await expect(answer.locator('math')).toHaveCount(6)
  await expect(answer.locator('mfrac')).toHaveCount(2)
  await expect(answer.locator('math[display=block]')).toHaveCount(2)
  await expect(answer).toContainText('It costs $5 and $10.')
  await expect(answer.locator('code')).toHaveText(['$code$', /\$indented\$ code/])
  await expect(answer).toContainText('$\\nosuchcommand{x}$')
  await expect(answer.locator('td math')).toHaveCount(2)
  await studio.page.getByRole('button', { name: /Thought for/ }).click()
  await expect(studio.answers.locator('.thinking math')).toHaveCount(1)
  // As text, a formula is what was written.
  await studio.button('Sort and filter').click()
  const cells = studio.page.frameLocator('.artefact iframe').locator('tbody td')
  await expect(cells).toHaveText(['$|x|$', '\\(\\infty\\)'])
})

test('subscripts hang below the line, whatever the font knows of mathematics', async ({ studio }) => {
  await answerWith(studio.page, [{ content: 'The first is $x_y$.' }])
  await studio.send('Which?')
  const letters = studio.answers.locator('math mi')
  await expect(letters).toHaveCount(2)
  const [base, below] = await letters.evaluateAll((list) => list.map((letter) => letter.getBoundingClientRect().bottom))
  expect(below).toBeGreaterThan(base! + 1)
})

test('a page without formulas does not load what draws them', async ({ page, server }) => {
  const loaded: string[] = []
  page.on('request', (request) => loaded.push(request.url()))
  await page.goto(server.url)
  const studio = new Studio(page)
  await answerWith(page, [{ content: 'It costs $5 and $10.' }, { content: 'So $x$.' }])
  await studio.send('Price?')
  await studio.settled()
  expect(loaded.filter((url) => /temml/.test(url))).toEqual([])
  await studio.send('Solve')
  await expect(studio.answers.last().locator('math')).toBeVisible()
  expect(loaded.filter((url) => /temml/.test(url))).toHaveLength(1)
})

test('a formula too wide for a phone scrolls in its own box', async ({ studio, page }) => {
  await page.setViewportSize({ width: 360, height: 740 })
  const long = Array.from({ length: 30 }, (_, i) => `x_{${i}}`).join(' + ')
  await answerWith(page, [{ content: `In a line $${long}$ of text.\n\n$$${long}$$` }])
  await studio.send('Long')
  await expect(studio.answers.locator('math')).toHaveCount(2)
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)
  const boxes = await studio.answers.locator('.formula').evaluateAll((list) =>
    list.map((box) => ({ scrolls: box.scrollWidth > box.clientWidth, overflow: getComputedStyle(box).overflowX })),
  )
  expect(boxes).toEqual([
    { scrolls: true, overflow: 'auto' },
    { scrolls: true, overflow: 'auto' },
  ])
})
