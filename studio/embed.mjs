// embed.mjs  Writes the built page as a C++ file: `node embed.mjs DIST OUT.cpp`. Without DIST: a page of no files.
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { extname, join, posix } from 'node:path'
import { gzipSync } from 'node:zlib'

const TYPES = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
}

function filesBelow(folder, prefix = '') {
  return readdirSync(join(folder, prefix), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = posix.join(prefix, entry.name)
      return entry.isDirectory() ? filesBelow(folder, path) : [path]
    })
}

// Octal escapes always have three digits, so that no digit of the text after them can join.
function literal(bytes) {
  const pieces = []
  for (let i = 0; i < bytes.length; i += 100) {
    const line = Array.from(bytes.subarray(i, i + 100), (b) => {
      const c = String.fromCharCode(b)
      return b >= 32 && b < 127 && !'"\\?'.includes(c) ? c : '\\' + b.toString(8).padStart(3, '0')
    })
    pieces.push(`"${line.join('')}"`)
  }
  return pieces.join('\n     ')
}

function entry(folder, path) {
  const type = TYPES[extname(path)]
  if (!type) throw new Error(`${path}: expected one of ${Object.keys(TYPES).join(' ')}`)
  const bytes = readFileSync(join(folder, path))
  const etag = createHash('sha256').update(bytes).digest('hex').slice(0, 16)
  const gzip = gzipSync(bytes, { level: 9 })
  return {
    gzip: gzip.length,
    text: `    {"${path}", "${type}", "\\"${etag}\\"",\n     {${literal(gzip)}, ${gzip.length}}},\n`,
  }
}

const [folder, out] = process.argv.length > 3 ? process.argv.slice(2) : [null, process.argv[2]]
const entries = folder ? filesBelow(folder).map((path) => entry(folder, path)) : []
const table = entries.length
  ? `  static constexpr PageFile kFiles[] = {\n${entries.map((e) => e.text).join('')}  };\n  return kFiles;\n`
  : '  return {};\n'
writeFileSync(
  out,
  `#include "server/admin/page.h"\n\nnamespace chimere::server {\n\n` +
    `std::span<const PageFile> embedded_page() {\n${table}}\n\n}  // namespace chimere::server\n`,
)
if (folder) console.log(`The page: ${entries.length} files, ${entries.reduce((sum, e) => sum + e.gzip, 0)} bytes compressed`)
