// database.ts  What the page keeps in the browser's IndexedDB: conversations, drafts, and what of them the server has, one
// record each. They are databases of their own because a new store in an old database waits until every other tab with an older page is closed.
import type { Conversation } from './conversations'
import type { StoredDraft } from './drafts'
import type { SyncState } from './sync'

function promised<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

class Records<T extends { id: string }> {
  private opened: Promise<IDBDatabase> | null = null

  constructor(
    private readonly database: string,
    private readonly name: string,
  ) {}

  private async store(mode: IDBTransactionMode) {
    this.opened ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(this.database, 1)
      request.onupgradeneeded = () => request.result.createObjectStore(this.name, { keyPath: 'id' })
      request.onsuccess = () => resolve(request.result)
      request.onerror = () => reject(request.error)
    })
    return (await this.opened).transaction(this.name, mode).objectStore(this.name)
  }

  // Done when it is on disk, and not when it is on its way there.
  private async write(change: (store: IDBObjectStore) => void): Promise<void> {
    const store = await this.store('readwrite')
    change(store)
    return new Promise((resolve, reject) => {
      store.transaction.oncomplete = () => resolve()
      store.transaction.onabort = () => reject(store.transaction.error)
    })
  }

  loadAll = async (): Promise<T[]> => promised((await this.store('readonly')).getAll())
  save = (record: T) => this.write((store) => store.put(record))
  remove = (id: string) => this.write((store) => store.delete(id))
  clear = () => this.write((store) => store.clear())
}

export const conversationRecords = new Records<Conversation>('chimere', 'conversations')
export const draftRecords = new Records<StoredDraft>('chimere-drafts', 'drafts')
export const syncRecords = new Records<SyncState>('chimere-sync', 'states') // made when it is first used
