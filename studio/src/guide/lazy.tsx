// lazy.tsx  The guide to models, loaded when it is first looked at.
import type { FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'

export function LazyGuide() {
  const [screen, setScreen] = useState<{ View: FunctionComponent } | null>(null)
  useEffect(() => {
    void import('./screen').then((module) => setScreen({ View: module.GuideScreen }))
  }, [])
  return screen ? <screen.View /> : <main id="content" tabIndex={-1} aria-busy="true" />
}
