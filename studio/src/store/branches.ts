// branches.ts  Other ways a conversation went. Its messages are the way that is shown; each other way is kept from the
// place where it parts, as it was last shown.
//
//   shown     A  B  C2 D        C1 and C2 are variants of one message: both come after B.
//   branch    after B, place 0: C1 E F
//
// Variants are counted by the order in which they came about. A branch knows its place in it; the shown way has the one
// that is missing.
import type { Conversation, Message } from './conversations'
import { leftOut } from './window'

export interface Branch {
  after: string | null // the message before it, on the shown way or on another branch; null: it is a beginning
  place: number
  messages: Message[]
  unsent?: number // of the conversation when this branch was shown, if that reached into it
}

type Changed = Pick<Conversation, 'messages' | 'branches' | 'unsent'>

const before = (messages: Message[], at: number) => messages[at - 1]?.id ?? null

const siblings = ({ branches = [] }: Conversation, after: string | null) => branches.filter((b) => b.after === after)

function shownPlace(others: Branch[]): number {
  let place = 0
  while (others.some((branch) => branch.place === place)) place++
  return place
}

export interface Variants {
  place: number
  count: number
}

// Of the message at this place of the shown way.
export function variantsAt(conversation: Conversation, at: number): Variants {
  const others = siblings(conversation, before(conversation.messages, at))
  return { place: shownPlace(others), count: others.length + 1 }
}

// An answer that never began is nothing to come back to.
const isWorthKeeping = ([first]: Message[]) =>
  first !== undefined &&
  (first.role !== 'assistant' || !!first.content || !!first.reasoning || !!first.toolCalls?.length)

// The shown way ends before `at`; what came there is a branch now. What came before a message that is not sent any more
// was short enough to be sent whole.
export function partAt(conversation: Conversation, at: number): Changed {
  const { messages, branches = [] } = conversation
  const after = before(messages, at)
  const unsent = leftOut(conversation)
  const tail = messages.slice(at)
  const left: Branch = {
    after,
    place: shownPlace(siblings(conversation, after)),
    messages: tail,
    ...(unsent > at ? { unsent } : {}),
  }
  return {
    messages: messages.slice(0, at),
    unsent: unsent > at ? 0 : unsent,
    branches: isWorthKeeping(tail) ? [...branches, left] : branches,
  }
}

// Another variant of the message at `at` is shown, with all that came after it.
export function showVariant(conversation: Conversation, at: number, place: number): Partial<Conversation> {
  const wanted = siblings(conversation, before(conversation.messages, at)).find((branch) => branch.place === place)
  if (!wanted) return {}
  const parted = partAt(conversation, at)
  return {
    messages: [...parted.messages, ...wanted.messages],
    branches: parted.branches!.filter((branch) => branch !== wanted),
    unsent: wanted.unsent ?? parted.unsent,
  }
}

// The way on which this message lies; the conversation as it is where it is shown already, or is nowhere.
export function showMessage(conversation: Conversation, id: string): Conversation {
  if (conversation.messages.some((m) => m.id === id)) return conversation
  const branch = conversation.branches?.find((b) => b.messages.some((m) => m.id === id))
  if (!branch) return conversation
  // The branch parts from a way that may have to be shown first.
  const whole = branch.after === null ? conversation : showMessage(conversation, branch.after)
  const at = whole.messages.findIndex((m) => m.id === branch.after) + 1
  return { ...whole, ...showVariant(whole, at, branch.place) }
}
