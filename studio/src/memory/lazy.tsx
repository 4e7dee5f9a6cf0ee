// lazy.tsx  The memory screen, loaded when it is first looked at.
import type { FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'

export function LazyMemory() {
  const [screen, setScreen] = useState<{ View: FunctionComponent } | null>(null)
  useEffect(() => {
    void import('./screen').then((module) => setScreen({ View: module.MemoryScreen }))
  }, [])
  return screen ? <screen.View /> : <main id="content" tabIndex={-1} aria-busy="true" />
}
