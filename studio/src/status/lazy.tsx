// lazy.tsx  The status screen with its plots, loaded when it is first looked at.
import type { FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'

export function LazyStatus() {
  const [screen, setScreen] = useState<{ View: FunctionComponent } | null>(null)
  useEffect(() => {
    void import('./screen').then((module) => setScreen({ View: module.StatusScreen }))
  }, [])
  return screen ? <screen.View /> : <main id="content" tabIndex={-1} aria-busy="true" />
}
