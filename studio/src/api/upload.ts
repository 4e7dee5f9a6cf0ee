// upload.ts  A file on its way to a collection. XMLHttpRequest, as fetch does not say how much has been sent.
import { admission } from '../store/pairing'
import { apiKey, askForKey, forgetKey, markOffline, markOnline } from '../store/session'
import { collectionPath, ConnectionLost, errorIn } from './client'
import type { AddedDocument } from './types'

interface Way {
  onSent: (share: number) => void // 1: all of it is there, and is being read
  signal: AbortSignal
}

const aborted = () => new DOMException('aborted', 'AbortError')

const sendOnce = (path: string, file: File, key: string | null, { onSent, signal }: Way) =>
  new Promise<XMLHttpRequest>((resolve, reject) => {
    const request = new XMLHttpRequest()
    const form = new FormData()
    form.append('file', file)
    request.open('POST', path)
    if (key) request.setRequestHeader('Authorization', `Bearer ${key}`)
    request.upload.onprogress = ({ loaded, total }) => onSent(total ? loaded / total : 0)
    request.upload.onload = () => onSent(1)
    request.onload = () => resolve(request)
    request.onabort = () => reject(aborted())
    request.onerror = () => reject(new ConnectionLost())
    signal.addEventListener('abort', () => request.abort(), { once: true })
    request.send(form)
  })

export async function upload(collection: string, file: File, way: Way): Promise<AddedDocument> {
  await admission
  for (;;) {
    if (way.signal.aborted) throw aborted()
    const key = apiKey()
    const request = await sendOnce(collectionPath(collection, '/documents'), file, key, way).catch((error) => {
      if (error instanceof ConnectionLost) markOffline()
      throw error
    })
    markOnline()
    if (request.status === 200) return JSON.parse(request.responseText).data[0] as AddedDocument
    const error = errorIn(request.responseText, request.status, request.statusText)
    if (request.status !== 401) throw error
    forgetKey(key)
    if (!(await askForKey(key !== null))) throw error
  }
}
