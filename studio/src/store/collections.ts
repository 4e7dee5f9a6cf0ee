// collections.ts  Documents that the server keeps for this key: the collections, and the files of the one that is open.
import { signal } from '@preact/signals'
import * as api from '../api/client'
import type { CollectionDocument, CollectionList, Passage } from '../api/types'
import { complain } from './complain'

// Null: this server keeps none. Undefined: not known yet.
export const collections = signal<CollectionList | null | undefined>(undefined)

// Of the collection that is looked at. `list` is null while it is being read, or where there is no such collection.
export const shelf = signal<{ collection: string; list: CollectionDocument[] | null; isMissing: boolean }>({
  collection: '',
  list: null,
  isMissing: false,
})

const isMissing = (error: unknown) => error instanceof api.ApiError && error.status === 404

export async function loadCollections() {
  collections.value = await api.collections().catch((error) => (isMissing(error) ? null : collections.value))
}

// What was asked for last is what is shown, in whatever order answers come.
export async function openShelf(collection: string) {
  if (shelf.value.collection !== collection) shelf.value = { collection, list: null, isMissing: false }
  const show = (list: CollectionDocument[] | null, gone: boolean) => {
    if (shelf.value.collection === collection) shelf.value = { collection, list, isMissing: gone }
  }
  try {
    show(await api.documents(collection), false)
  } catch (error) {
    if (isMissing(error)) show(null, true)
    else complain(error)
  }
}

// After a change: the files that are looked at, and how many each collection has.
export async function lookAgain(collection: string) {
  await Promise.all([loadCollections(), shelf.value.collection === collection ? openShelf(collection) : null])
}

// Names are letters, digits, '-', '_' and '.', as the server has them; whatever else is typed is made one.
export const collectionName = (typed: string) =>
  typed
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^\w.-]+/g, '-')
    .replace(/^[^a-zA-Z0-9]+|-+$/g, '')
    .slice(0, 64)

// Whether the server did it; else it has said why not.
async function done(work: Promise<unknown>, then: () => Promise<unknown>): Promise<boolean> {
  try {
    await work
    await then()
    return true
  } catch (error) {
    complain(error)
    return false
  }
}

export const makeCollection = (name: string) => done(api.makeCollection(name), loadCollections)
export const deleteCollection = (name: string) => done(api.deleteCollection(name), loadCollections)
export const deleteDocument = (name: string, document: string) =>
  done(api.deleteDocument(name, document), () => lookAgain(name))

// Null: the server has said why not.
export async function findPassages(name: string, query: string): Promise<Passage[] | null> {
  try {
    return await api.searchCollection(name, query)
  } catch (error) {
    complain(error)
    return null
  }
}
