// lazy.tsx  A screen that is loaded when it is first looked at.
import type { FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'

export const lazy = (load: () => Promise<FunctionComponent>) =>
  function Lazy() {
    const [screen, setScreen] = useState<{ View: FunctionComponent } | null>(null)
    useEffect(() => {
      void load().then((View) => setScreen({ View }))
    }, [])
    return screen ? <screen.View /> : <main id="content" tabIndex={-1} aria-busy="true" />
  }
