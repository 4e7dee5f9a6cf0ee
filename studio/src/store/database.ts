// database.ts  Conversations in the browser's IndexedDB, one record each.
import type { Conversation } from './conversations'

const STORE = 'conversations'
let opened: Promise<IDBDatabase> | null = null

function promised<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

function open(): Promise<IDBDatabase> {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open('chimere', 1)
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: 'id' })
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
  return opened
}

async function store(mode: IDBTransactionMode) {
  return (await open()).transaction(STORE, mode).objectStore(STORE)
}

export const loadAll = async (): Promise<Conversation[]> => promised((await store('readonly')).getAll())
export const save = async (conversation: Conversation) => promised((await store('readwrite')).put(conversation))
export const remove = async (id: string) => promised((await store('readwrite')).delete(id))
export const clear = async () => promised((await store('readwrite')).clear())
