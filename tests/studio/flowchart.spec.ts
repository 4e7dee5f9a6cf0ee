// Flow charts: every form of an edge is read, drawn with its label, and what cannot be drawn is said.
import { drawFlowchart } from '../../studio/src/artefacts/flowchart'
import { isFlowchart, parseFlowchart } from '../../studio/src/artefacts/flowchart_text'
import { answerWith, expect, test } from './server'

const SIGNS = { plain: '-', thick: '=', dotted: '.', hidden: '~' }
const TIPS = { none: '', arrow: '>', circle: 'o', cross: 'x' }

// "A ->yes B" for each edge: what matters of it, in short.
function edges(lines: string, head = 'graph TD'): string[] {
  const chart = parseFlowchart(`${head}\n${lines}`)!
  expect(chart.unread, lines).toEqual([])
  return chart.edges.map(
    ({ from, to, label, line, start, end }) =>
      `${from} ${start === 'none' ? '' : '<'}${SIGNS[line]}${TIPS[end]}${label && `[${label}]`} ${to}`,
  )
}

test.describe('edges that are read', () => {
  for (const [source, ...expected] of [
    ['A --> B', 'A -> B'],
    ['A-->B', 'A -> B'],
    ['A---B', 'A - B'],
    ['A ----> B', 'A -> B'],
    ['A -->|yes| B', 'A ->[yes] B'],
    ['A--> |yes| B', 'A ->[yes] B'],
    ['A -->|"yes | no"| B', 'A ->[yes | no] B'],
    ['A -- yes --> B', 'A ->[yes] B'],
    ['A--yes-->B', 'A ->[yes] B'],
    ['A -- "yes, it is" --> B', 'A ->[yes, it is] B'],
    ['A -- non-zero --> B', 'A ->[non-zero] B'],
    ['A -- x >= 0 --> B', 'A ->[x >= 0] B'],
    ['A -- open --- B', 'A -[open] B'],
    ['A --only--> B', 'A ->[only] B'],
    ['A -.-> B', 'A .> B'],
    ['A -.->|x| B', 'A .>[x] B'],
    ['A -. x .-> B', 'A .>[x] B'],
    ['A -.x.-> B', 'A .>[x] B'],
    ['A -. x .- B', 'A .[x] B'],
    ['A -..-> B', 'A .> B'],
    ['A ==> B', 'A => B'],
    ['A ==>|x| B', 'A =>[x] B'],
    ['A == x ==> B', 'A =>[x] B'],
    ['A === B', 'A = B'],
    ['A ~~~ B', 'A ~ B'],
    ['A --o B', 'A -o B'],
    ['A --x B', 'A -x B'],
    ['A --oB', 'A -o B'],
    ['A <--> B', 'A <-> B'],
    ['A o--o B', 'A <-o B'],
    ['A <-- both --> B', 'A <->[both] B'],
    ['A e1@--> B', 'A -> B'],
    ['A --> B -->|x| C', 'A -> B', 'B ->[x] C'],
    ['A -- a --> B -- b --> C', 'A ->[a] B', 'B ->[b] C'],
    ['A & B --> C', 'A -> C', 'B -> C'],
    ['A & B -->|x| C & D', 'A ->[x] C', 'A ->[x] D', 'B ->[x] C', 'B ->[x] D'],
    ['A -->|x| B\nA -->|y| B', 'A ->[x] B', 'A ->[y] B'],
    ['A -->|again| A', 'A ->[again] A'],
    ['A --> B\nB -->|back| A', 'A -> B', 'B ->[back] A'],
    ['A --> B; B --> C;', 'A -> B', 'B -> C'],
    ['A["x; y"] --> B["say #quot;hi#quot;"]', 'A -> B'],
    ['A[Call f(x)] --> B(Call g(y)) --> C{is {3}?}', 'A -> B', 'B -> C'],
    ['A[(Store)] --> B[/In/] --> C{{Hex}} --> D>Flag] --> E(((End)))', 'A -> B', 'B -> C', 'C -> D', 'D -> E'],
    ['A@{ shape: diamond, label: "Really?" } -->|yes| B', 'A ->[yes] B'],
    ['Début --> étape-2 --> 終わり', 'Début -> étape-2', 'étape-2 -> 終わり'],
    // Names that begin like a keyword
    ['classify{Kind?} -->|text| styled', 'classify ->[text] styled'],
    ['endpoint -->|ok| direction2 --> subgraph2 --> clicked', 'endpoint ->[ok] direction2', 'direction2 -> subgraph2', 'subgraph2 -> clicked'],
    ['A:::hot --> B:::cold', 'A -> B'],
    ['subgraph one [The first]\nA --> B\nend\nB -->|out| C\none --> C', 'A -> B', 'B ->[out] C', 'one -> C'],
  ] as string[][]) {
    test(source!.replace(/\n/g, ' ⏎ '), () => expect(edges(source!)).toEqual(expected))
  }

  test('on the line of the heading, and below a title', () => {
    expect(edges('', 'graph LR; A-->|x|B')).toEqual(['A ->[x] B'])
    const titled = '---\ntitle: T\n---\n%% note\nflowchart LR\nA --> B'
    expect(isFlowchart(titled)).toBe(true)
    expect(parseFlowchart(titled)!.edges).toHaveLength(1)
    expect(isFlowchart('sequenceDiagram\nA->>B: hi')).toBe(false)
  })

  test('labels are what was meant', () => {
    const chart = parseFlowchart('graph TD\nA["one<br/>two"] --> B["`say #quot;hi#quot; &amp; #35;1`"]\nC["three\nfour"]')!
    expect([...chart.nodes.values()].map(({ label }) => label)).toEqual(['one\ntwo', 'say "hi" & #1', 'three\nfour'])
  })

  test('what is not understood is kept', () => {
    const chart = parseFlowchart('graph TD\nA --> B\nB -->\n!!\nA ->> C\nstyle A fill:#f9f\nsubgraph g\ndirection LR\nD\nend')!
    expect(chart.unread).toEqual(['B -->', '!!', 'A ->> C', 'direction LR'])
    expect(chart.hasStyles).toBe(true)
    const many = Array.from({ length: 400 }, (_, i) => `n${i} --> n${i + 1}`).join('\n')
    expect(parseFlowchart(`graph TD\n${many}`)!.isCut).toBe(true)
  })
})

const CHARTS: Record<string, string> = {
  decision: `graph TD
    A[Prompt] --> B{Seen before?}
    B -->|yes| C(Restore state)
    B -->|no| D(Compute)
    C --> E[Answer]
    D --> E
    E -->|next turn| A`,
  forms: `flowchart LR
    A -- yes --> B
    A -. "maybe not" .-> C
    A == surely ==> D
    B & C -->|joined| E
    D --> E -->|end of it| F((F))`,
  'same nodes': `graph TD
    A[Client] -->|request| B[Server]
    A -->|heartbeat| B
    B -->|answer| A
    B -->|error| A
    B -->|retry with a long explanation of why| B
    B --> B`,
  'long ways': `graph TD
    A --> B --> C --> D --> E
    A -->|skips three| E
    A -->|skips one| C
    E -->|back to the start| A
    D -->|back| B
    C -->|loop| C`,
  groups: `flowchart TD
    subgraph web [Web page]
      U[User] -->|types| P[Page]
    end
    subgraph server [Server]
      direction TB
      H[HTTP] --> Q{Queue full?}
      Q -->|no| E[Engine]
      subgraph deep [Card]
        K[(Cache)] -->|hit| M[Model]
      end
      E -->|looks up| K
    end
    P -->|asks| H
    Q -->|yes, 429| P
    M -->|tokens| P
    web -.->|watches| server`,
  upwards: `graph BT
    A -->|one| B
    A -->|two| C
    B & C --> D
    D -->|down again| A`,
  leftwards: `graph RL
    A[A node with a rather long text that has to be broken] -->|x| B{Is it?}
    B -->|no| C[[Sub]]
    B -->|yes| D[/Slanted/]
    C -->|self| C`,
}

interface Drawn {
  labels: { text: string; box: DOMRect }[]
  nodes: { text: string; box: DOMRect }[]
  groups: DOMRect[]
  paths: number
  size: DOMRect
}

for (const [name, source] of Object.entries(CHARTS)) {
  for (const dark of [false, true]) {
    test(`every edge is drawn, and no label is covered: ${name}, ${dark ? 'dark' : 'light'}`, async ({ page }) => {
      const chart = parseFlowchart(source)!
      const { svg, unread } = drawFlowchart(source, dark)!
      expect(unread).toEqual([])
      await page.setContent(`<body>${svg}</body>`)
      const drawn: Drawn = await page.evaluate(() => {
        const boxes = (selector: string) =>
          [...document.querySelectorAll(selector)].map((element) => ({
            text: element.textContent!.replace(/\s+/g, ' ').trim(),
            box: element.getBoundingClientRect().toJSON(),
          }))
        return {
          labels: boxes('text.l'),
          nodes: boxes('[data-node]'),
          groups: boxes('[data-group] rect').map(({ box }) => box),
          paths: document.querySelectorAll('[data-edge] path.e').length,
          size: document.querySelector('svg')!.getBoundingClientRect().toJSON(),
        }
      })
      expect(drawn.paths).toBe(chart.edges.length)
      expect(drawn.labels.map(({ text }) => text).sort()).toEqual(
        chart.edges.map(({ label }) => label).filter(Boolean).sort(),
      )
      expect(drawn.nodes).toHaveLength(chart.nodes.size)
      expect(drawn.groups).toHaveLength(chart.groups.size)
      const overlap = (a: DOMRect, b: DOMRect) =>
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1
      const things = [...drawn.labels, ...drawn.nodes]
      for (const [i, a] of things.entries()) {
        for (const b of things.slice(i + 1)) expect(overlap(a.box, b.box), `${a.text} over ${b.text}`).toBe(false)
        const { left, right, top, bottom } = a.box
        expect(left >= drawn.size.left && right <= drawn.size.right && top >= drawn.size.top && bottom <= drawn.size.bottom).toBe(true)
      }
    })
  }
}

test('a chart with hundreds of edges has them all', () => {
  const lines = Array.from({ length: 290 }, (_, i) => `n${(i * 7) % 97} -->|label ${i}| n${(i * 13) % 101}`)
  const drawing = drawFlowchart(`graph TD\n${lines.join('\n')}`, false)!
  expect(drawing.svg.match(/class="e"/g)).toHaveLength(290)
  expect(drawing.svg.match(/class="l"/g)).toHaveLength(290)
})

test('what a chart cannot show is said below it', async ({ studio }) => {
  const source = 'graph TD\nA[One] -->|then| B[Two]\nB ->> C\nstyle A fill:#f9f\nsubgraph g\nD\nend\ng --> D'
  await answerWith(studio.page, [{ content: '```mermaid\n' + source + '\n```' }])
  await studio.send('Draw')
  await studio.settled()
  await studio.button('Preview').click()
  const frame = studio.page.frameLocator('.artefact iframe')
  await expect(frame.locator('svg text.l')).toHaveText('then')
  await expect(frame.locator('aside li')).toHaveText(['B ->> C', 'g → D'])
  await expect(frame.locator('aside')).toContainText('Colours, styles and links are left out.')
})
