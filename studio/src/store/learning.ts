// learning.ts  What the user thinks of answers, and whether the server may keep them to learn from.
import { computed, signal } from '@preact/signals'
import * as api from '../api/client'
import type { FeedbackBody, Learning } from '../api/types'
import { t } from '../i18n'
import { confirmThen } from '../ui/dialog'
import { notify } from '../ui/notice'
import { complain } from './complain'
import { updateMessage, type Message } from './conversations'
import { canLearn } from './memory'
import { settings } from './settings'

// Null: the server does not tell.
export const learning = signal<Learning | null>(null)
export const canRate = computed(() => learning.value !== null && learning.value.mode !== 'off')

// As requests of this page name themselves (request.ts).
export const owner = () => (canLearn.value ? { user: settings.value.user } : {})

export async function loadLearning() {
  learning.value = await api
    .learning(owner().user)
    .catch((error) => (error instanceof api.ConnectionLost ? learning.value : null))
}

export async function agree(agreed: boolean) {
  try {
    learning.value = await api.agreeToLearning({ ...owner(), agreed })
  } catch (error) {
    complain(error)
  }
}

export async function eraseLearned() {
  try {
    const { answers } = await api.eraseLearned(owner().user)
    notify(t('learningErased', { n: answers }))
    await loadLearning()
  } catch (error) {
    complain(error)
  }
}

export type Thumb = 'up' | 'down'

async function say(what: FeedbackBody): Promise<boolean> {
  try {
    await api.feedback({ ...owner(), ...what })
    return true
  } catch (error) {
    complain(error)
    return false
  }
}

// The answer is on the server, if at all, by the id of its request.
const isKnown = (message: Message): message is Message & { requestId: string } => message.requestId !== undefined

async function give(conversationId: string, message: Message & { requestId: string }, thumb: Thumb | null) {
  const before = message.thumb
  updateMessage(conversationId, message.id, { thumb })
  const isGiven = await say({ request_id: message.requestId, thumb: thumb ?? 'none' })
  if (!isGiven) updateMessage(conversationId, message.id, { thumb: before ?? null })
}

// The first time, the question comes before the thumb.
export function rate(conversationId: string, message: Message, thumb: Thumb | null) {
  if (!isKnown(message)) return
  if (learning.value?.keeps) return void give(conversationId, message, thumb)
  const agreeAndGive = async () => {
    await agree(true)
    if (learning.value?.keeps) await give(conversationId, message, thumb)
  }
  const kind = { otherwise: t('learningNo'), hint: t('learningQuestionHint'), isHarmless: true }
  confirmThen(t('learningQuestion'), t('learningAgree'), () => void agreeAndGive(), kind)
}

export async function correctAnswer(message: Message, correction: string): Promise<boolean> {
  if (!isKnown(message) || !(await say({ request_id: message.requestId, correction }))) return false
  notify(t('learningThanks'))
  return true
}

// What the user did with an answer. Nobody is told when it can not be said: nothing was asked for.
export function tellSign(message: Message | undefined, sign: 'copied' | 'regenerated' | 'edited') {
  if (!message || !isKnown(message) || !learning.value?.keeps) return
  api.feedback({ ...owner(), request_id: message.requestId, sign }).catch(() => undefined)
}
