// route.ts  Which screen is shown, kept in the fragment of the address.
import { signal } from '@preact/signals'

export type Screen = 'chat' | 'files' | 'improve' | 'memory' | 'odo' | 'status' | 'guide'

const SCREENS: Record<string, Screen> = {
  '#/status': 'status',
  '#/memory': 'memory',
  '#/improve': 'improve',
  '#/models': 'guide',
  '#/odo': 'odo',
  '#/files': 'files',
}

// #/files/COLLECTION/DOCUMENT: what the screen of files is opened at.
export interface FilesPlace {
  collection: string // '': the list of them
  document: string // '': none of its files
}

const FILES = '#/files'

export const filesAddress = (collection = '', document = '') =>
  [FILES, collection, document].filter((part, at) => !at || part).map((part, at) => (at ? encodeURIComponent(part) : part)).join('/')

function part(text: string | undefined): string {
  try {
    return decodeURIComponent(text ?? '')
  } catch {
    return '' // written by hand, and wrong
  }
}

const parts = () => location.hash.split('/')
const read = (): Screen => SCREENS[parts().slice(0, 2).join('/')] ?? 'chat'
const readPlace = (): FilesPlace => ({ collection: part(parts()[2]), document: part(parts()[3]) })

export const screen = signal<Screen>(read())
export const filesPlace = signal<FilesPlace>(readPlace())
addEventListener('hashchange', () => {
  screen.value = read()
  filesPlace.value = readPlace()
})
