// window.ts  Which part of a conversation is sent. A context that is full is no end: the oldest turns stay in the
// conversation and leave what is sent; the system prompt stays in both.
import type { Conversation, Message } from './conversations'

export interface Size {
  tokens: number | null // of all that is sent now, the answer included; null: not known
  context: number | null
}

// Of what fits, so much may be taken when turns are left out: the rest is for the answers to come. One turn alone may
// take more.
const KEPT_SHARE = 0.5
const TURN_SHARE = 0.95

const length = (message: Message) =>
  message.content.length +
  (message.files ?? []).reduce((sum, file) => sum + file.name.length + file.text.length, 0) +
  (message.toolCalls ?? []).reduce((sum, call) => sum + call.name.length + call.arguments.length, 0)

const total = (messages: Message[]) => messages.reduce((sum, message) => sum + length(message), 0)

// How many messages are left out; an edit may have dropped more than that.
export const leftOut = ({ unsent = 0, messages }: Conversation) => Math.min(unsent, messages.length)

export const sentMessages = (conversation: Conversation) => conversation.messages.slice(leftOut(conversation))

// Where what is sent could begin instead: at a later question, the first that leaves room by the measure of characters
// a token, else at the last one. Null when there is none, or the last leaves no room either.
export function laterStart(conversation: Conversation, { tokens, context }: Size): number | null {
  const { messages, system } = conversation
  const from = leftOut(conversation)
  const starts = messages.flatMap((message, at) => (message.role === 'user' && at > from ? [at] : []))
  // Without figures: what is sent now is what fits, more or less.
  const fits = tokens && context ? context / tokens : 1
  const most = fits * (system.length + total(messages.slice(from)))
  const taken = (at: number) => system.length + total(messages.slice(at))
  const last = starts.at(-1)
  const small = starts.find((at) => taken(at) <= KEPT_SHARE * most)
  if (small !== undefined || last === undefined) return small ?? null
  return taken(last) <= TURN_SHARE * most ? last : null
}
