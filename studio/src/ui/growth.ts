// growth.ts  A text area as high as its text, up to the max-height that its style gives it.
import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect } from 'preact/hooks'

function fit(area: HTMLTextAreaElement) {
  // The scroll height of an area never shrinks below its height, so that has to go first.
  area.style.height = 'auto'
  const borders = area.offsetHeight - area.clientHeight
  area.style.height = `${area.scrollHeight + borders}px`
}

export function useGrowth(area: RefObject<HTMLTextAreaElement>, text: string) {
  useLayoutEffect(() => {
    if (area.current) fit(area.current)
  }, [text])
  // A narrower area has more lines.
  useEffect(() => {
    const element = area.current
    if (!element) return
    let width = element.clientWidth
    const observer = new ResizeObserver(() => {
      if (element.clientWidth === width) return
      width = element.clientWidth
      fit(element)
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
}
