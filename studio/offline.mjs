// offline.mjs  Writes the service worker of the built page: `node offline.mjs DIST`. worker.js, below the list of what it
// keeps, which is every file, and a name that changes with any of them.
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const dist = process.argv[2]
const names = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(dist.length + 1))
  .sort()
const hash = createHash('sha256')
for (const name of names) hash.update(name).update(readFileSync(join(dist, name)))
const files = names.map((name) => (name === 'index.html' ? '/' : `/studio/${name}`))
writeFileSync(
  join(dist, 'sw.js'),
  `const NAME = 'chimere-${hash.digest('hex').slice(0, 12)}'\nconst FILES = ${JSON.stringify(files)}\n` +
    readFileSync(new URL('worker.js', import.meta.url), 'utf8'),
)
