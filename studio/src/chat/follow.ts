// follow.ts  Keeps the end of an answer in view for a reader who is there, and leaves alone one who scrolled away.
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Conversation } from '../store/conversations'
import { showPlace, wantedPlace } from './place'

const FAR = 200 // pixels: nearer than this the end is in sight
const NEAR_END = 60 // pixels: whoever scrolls down to here wants to be at the end

export function useFollow(conversation: Conversation | undefined) {
  const scroller = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  const [isAway, setIsAway] = useState(false)
  const [isFar, setIsFar] = useState(false)

  const setFollows = (value: boolean) => {
    follows.current = value
    setIsAway(!value)
  }
  const leftBelow = (box: HTMLElement) => box.scrollHeight - box.scrollTop - box.clientHeight
  const toEnd = () => {
    const box = scroller.current
    if (!box) return
    if (follows.current) box.scrollTop = box.scrollHeight
    setIsFar(leftBelow(box) > FAR)
  }

  useEffect(() => {
    const box = scroller.current
    if (!box) return
    setFollows(true)
    let top = box.scrollTop
    const onScroll = () => {
      const left = leftBelow(box)
      setIsFar(left > FAR)
      // Upwards, however little, is away from the end; a text that shrinks moves the reader up as well, but leaves
      // nothing below. Downwards never is: by the time it is told, the answer may have grown past where it led.
      if (box.scrollTop < top) setFollows(left <= 1)
      else if (left < NEAR_END) setFollows(true)
      top = box.scrollTop
    }
    box.addEventListener('scroll', onScroll, { passive: true })
    const observer = new ResizeObserver(toEnd)
    observer.observe(box.firstElementChild!)
    observer.observe(box) // which gives way to a growing composer
    toEnd()
    return () => {
      observer.disconnect()
      box.removeEventListener('scroll', onScroll)
    }
  }, [conversation?.id])

  // Whoever sends a message wants to see what comes of it.
  const questions = conversation?.messages.filter((message) => message.role === 'user').length ?? 0
  const before = useRef({ id: conversation?.id, questions })
  useEffect(() => {
    const isSent = before.current.id === conversation?.id && questions > before.current.questions
    before.current = { id: conversation?.id, questions }
    if (isSent) jump()
  }, [conversation?.id, questions])

  const place = wantedPlace.value
  useEffect(() => {
    if (!place || !scroller.current) return
    setFollows(false)
    showPlace(scroller.current, place)
  }, [place, conversation?.id])

  const jump = () => {
    setFollows(true)
    toEnd()
  }
  return { scroller, isAway, isFar, jump }
}
