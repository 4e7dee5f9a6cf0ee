// Files that the server keeps: collections, adding and deleting files, what is found in them, and what an answer cites.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as alone, type Page } from '@playwright/test'
import { looksRight } from './accessibility'
import { expect, Server, Studio } from './server'

const BEANS = '# Beans\n\nThe beans of Orlo are planted on the ninth of May.\n'
const CLOCK = '# Shed\n\nThe key of the shed hangs behind the clock.\n'
const file = (name: string, text: string | Buffer, mimeType = 'text/plain') => ({ name, mimeType, buffer: Buffer.from(text) })

async function withFiles(page: Page, visit: (studio: Studio, server: Server) => Promise<void>, options: string[] = []) {
  const folder = mkdtempSync(join(tmpdir(), 'chimere-files-'))
  const server = new Server(['--collections-db', join(folder, 'collections.db'), ...options])
  await server.start()
  try {
    await page.goto(server.url)
    await visit(new Studio(page), server)
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const main = (page: Page) => page.getByRole('main')
const documents = (page: Page) => main(page).locator('.entry:not(.passage)')
const uploads = (page: Page) => main(page).locator('.upload')
const picker = (page: Page) => page.locator('[data-purpose=documents]')

async function make(page: Page, name: string) {
  await page.getByRole('link', { name: 'Files', exact: true }).click()
  await page.getByLabel('Name of a new collection').fill(name)
  await page.keyboard.press('Enter')
}

alone('a collection is made, filled, searched and deleted', async ({ page }) => {
  await withFiles(page, async () => {
    await page.getByRole('link', { name: 'Files', exact: true }).click()
    await expect(main(page).getByText('There is no collection yet.')).toBeVisible()
    await looksRight(page, 'no collection')
    await page.getByLabel('Name of a new collection').fill('Élans du jardin')
    await expect(main(page).getByText('It will be called Elans-du-jardin.')).toBeVisible()
    await page.getByRole('button', { name: 'Make it' }).click()
    await expect(page.getByRole('heading', { name: 'Elans-du-jardin' })).toBeFocused()
    await expect(main(page).getByText('There is no file in it yet.')).toBeVisible()
    await expect(main(page).getByText(/^Text, Markdown, HTML, PDF.* At most 8\.4 MB each\.$/)).toBeVisible()

    // Several at a time: what can be read, what cannot, what is too large, what is there already.
    const program = Buffer.from('\x7fELF\0\0\0', 'latin1')
    await picker(page).setInputFiles([file('beans.md', BEANS), file('shed.md', CLOCK), file('x.bin', program)])
    await expect(uploads(page)).toHaveCount(3)
    await expect(uploads(page).nth(0)).toHaveAttribute('data-state', 'done')
    await expect(uploads(page).nth(0)).toContainText('Added, passages: 1')
    await expect(uploads(page).nth(2)).toHaveAttribute('data-state', 'failed')
    await expect(uploads(page).nth(2)).toContainText('a program') // the server's own words
    await expect(page.getByRole('status').filter({ hasText: 'Files added: 2; not added: 1' })).toBeAttached()
    await expect(documents(page)).toHaveCount(2)
    await expect(documents(page).first()).toContainText('beans.md')
    await expect(documents(page).first()).toContainText(/markdown · \d+ B · 1 passage · /)
    await page.getByRole('button', { name: 'Clear this list' }).press('Enter')
    await expect(uploads(page)).toHaveCount(0)
    await expect(page.getByRole('heading', { name: 'Files of this collection' })).toBeFocused()
    await picker(page).setInputFiles([file('beans.md', BEANS), file('shed.md', CLOCK + '\nAnd a lamp.\n'), file('big.txt', Buffer.alloc(9_000_000, 'a '))])
    await expect(uploads(page).nth(0)).toContainText('Was there already, unchanged')
    await expect(uploads(page).nth(1)).toContainText('In the place of an older version')
    await expect(uploads(page).nth(2)).toContainText('9 MB: at most 8.4 MB are taken.')
    await looksRight(page, 'uploads')

    await page.getByLabel('A question or words').fill('where is the key of the shed')
    await page.keyboard.press('Enter')
    const found = main(page).locator('.passage')
    await expect(found.first()).toContainText('hangs behind the clock')
    await expect(found.first()).toContainText(/line \d+ · score \d+\.\d+ · by words: 1/)
    await expect(page.getByRole('status').filter({ hasText: /Passages found: \d/ })).toBeAttached()
    await looksRight(page, 'passages')
    await found.first().getByRole('link', { name: 'shed.md' }).click()
    await expect(documents(page).filter({ hasText: 'shed.md' })).toBeFocused()
    await expect(documents(page).filter({ hasText: 'shed.md' })).toHaveAttribute('aria-current', 'true')
    await page.getByLabel('A question or words').fill('zebra')
    await page.getByRole('button', { name: 'Find' }).click()
    await expect(main(page).getByText('No passage was found.')).toBeVisible()

    // What is deleted is gone for good, which is said before.
    await page.getByRole('button', { name: 'Delete “beans.md”' }).press('Enter')
    await expect(page.getByRole('dialog')).toContainText('This cannot be undone here.')
    await page.keyboard.press('Escape')
    await expect(documents(page)).toHaveCount(2)
    await page.getByRole('button', { name: 'Delete “beans.md”' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await expect(documents(page)).toHaveCount(1)
    await page.getByRole('link', { name: 'All collections' }).click()
    await expect(documents(page)).toContainText('1 file · 1 passage · ')
    await page.getByRole('button', { name: 'Delete “Elans-du-jardin”' }).click()
    await expect(page.getByRole('dialog')).toContainText('with its file from the server? This cannot be undone.')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await expect(main(page).getByText('There is no collection yet.')).toBeVisible()
    await page.goto(page.url() + '/Elans-du-jardin')
    await expect(main(page).getByText('There is no collection “Elans-du-jardin” here any more.')).toBeVisible()
  })
})

alone('files are dropped on the page, sent one after another, and can be called back', async ({ page }) => {
  await withFiles(page, async (_, server) => {
    await make(page, 'garden')
    await expect(main(page).getByText('There is no file in it yet.')).toBeVisible()
    let release = () => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    await page.route('**/v1/collections/garden/documents', async (route) => {
      if (route.request().method() === 'POST') await held
      await route.continue().catch(() => undefined) // which was called back meanwhile
    })
    const dropped = await page.evaluateHandle(() => {
      const data = new DataTransfer()
      for (const name of ['one.txt', 'two.txt', 'three.txt']) data.items.add(new File([`The text of ${name}.`], name, { type: 'text/plain' }))
      return data
    })
    await main(page).dispatchEvent('dragover', { dataTransfer: dropped })
    await expect(main(page).locator('.drop')).toHaveClass(/over/)
    await main(page).dispatchEvent('drop', { dataTransfer: dropped })
    await expect(main(page).locator('.drop')).not.toHaveClass(/over/)
    await expect(uploads(page)).toHaveCount(3)
    await expect(uploads(page).nth(0).getByRole('progressbar')).toBeVisible()
    await expect(uploads(page).nth(1)).toContainText('Waits')
    await page.getByRole('button', { name: 'Cancel two.txt' }).press('Enter')
    await expect(uploads(page).nth(1)).toContainText('Cancelled')
    await expect(page.getByRole('heading', { name: 'Uploads' })).toBeFocused()
    await page.getByRole('button', { name: 'Cancel one.txt' }).click()
    await expect(uploads(page).nth(0)).toContainText('Cancelled')
    release()
    await expect(uploads(page).nth(2)).toContainText('Added, passages: 1')
    await expect(documents(page)).toHaveCount(1)
    await expect(documents(page)).toContainText('three.txt')
    const listed = await (await page.request.get(`${server.url}/v1/collections/garden/documents`)).json()
    expect(listed.data.map((one: any) => one.name)).toEqual(['three.txt'])
  })
})

alone('an answer reads the collection that was chosen, and its sources lead to the passage and the file', async ({ page }) => {
  await withFiles(page, async (studio) => {
    await make(page, 'garden')
    await picker(page).setInputFiles([file('beans.md', BEANS), file('shed.md', CLOCK)])
    await expect(documents(page)).toHaveCount(2)
    await page.getByRole('link', { name: 'Chat' }).click()
    await studio.openSettings()
    await page.getByLabel('Temperature').fill('0')
    await studio.choose('Answers come from', 'odo')
    await page.locator('.panel').getByRole('button', { name: 'Close' }).click()

    await page.getByRole('button', { name: 'Sources and tools' }).press('Enter')
    const choices = page.getByRole('group', { name: 'Sources and tools' })
    await choices.getByRole('combobox', { name: 'Collections' }).selectOption('these')
    await expect(choices.getByRole('checkbox', { name: 'garden' })).toBeChecked()
    await page.keyboard.press('Escape')
    await expect(choices).toHaveCount(0)
    await expect(page.getByRole('button', { name: 'Sources and tools' })).toBeFocused()
    const asked = page.waitForRequest('**/v1/chat/completions')
    await studio.send('When are the beans of Orlo planted?')
    expect((await asked).postDataJSON().odo).toMatchObject({ collections: ['garden'] })
    await studio.settled()
    await expect(studio.answers.locator('.markdown')).toContainText('ninth of May')
    const cited = studio.answers.getByRole('region', { name: 'Sources' })
    await expect(cited.getByRole('listitem').first()).toContainText('The beans of Orlo are planted on the ninth of May.')
    await expect(cited.getByRole('listitem').first()).toContainText('garden / beans.md')
    await expect(studio.answers.locator('.sources')).toHaveCount(0) // each is listed once
    await cited.getByRole('link').first().click()
    await expect(page.getByRole('heading', { name: 'garden' })).toBeVisible()
    await expect(documents(page).filter({ hasText: 'beans.md' })).toBeFocused()
    await page.goBack()
    await expect(cited).toBeVisible()
  })
})

alone('a server that keeps no files offers no screen for them', async ({ page }) => {
  await withFiles(
    page,
    async (studio, server) => {
      await expect(page.locator('.model-name')).toHaveText('chimere-nano')
      await studio.openSettings()
      await studio.choose('Answers come from', 'odo')
      await expect(page.getByRole('link', { name: 'Files', exact: true })).toHaveCount(0)
      await page.goto(`${server.url}/#/files`)
      await expect(main(page).getByText('This server keeps no files')).toBeVisible()
    },
    ['--no-collections'],
  )
})

alone('the screen is in French for those who read it', async ({ page }) => {
  await withFiles(page, async (studio) => {
    await studio.openSettings()
    await page.getByLabel('Language').selectOption('fr')
    await page.getByRole('link', { name: 'Fichiers', exact: true }).click()
    await expect(page.getByLabel('Nom d’une nouvelle collection')).toBeVisible()
    await page.getByLabel('Nom d’une nouvelle collection').fill('jardin')
    await page.getByRole('button', { name: 'Créer' }).click()
    await picker(page).setInputFiles([file('haricots.md', '# Haricots\n\nLes haricots sont plantés en mai.\n')])
    await expect(uploads(page)).toContainText('Ajouté, passages : 1')
    await expect(documents(page)).toContainText(/1 passage/)
  })
})
