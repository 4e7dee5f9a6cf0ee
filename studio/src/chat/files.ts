// files.ts  Text files that go with a message.
import { t } from '../i18n'
import type { AttachedFile } from '../store/conversations'
import { bytes } from '../ui/format'
import { notify } from '../ui/notice'

const LIMIT = 1_000_000

async function readText(file: File): Promise<AttachedFile | null> {
  if (file.size > LIMIT) {
    notify(t('fileTooLarge', { name: file.name, limit: bytes(LIMIT) }), 'error')
    return null
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer())
    if (!text.includes('\0')) return { name: file.name, text }
  } catch {
    // not UTF-8
  }
  notify(t('fileBinary', { name: file.name }), 'error')
  return null
}

export async function readFiles(list: Iterable<File>): Promise<AttachedFile[]> {
  const read = await Promise.all([...list].map(readText))
  return read.filter((file) => file !== null)
}
