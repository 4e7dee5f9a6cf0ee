// context_use.ts  How many tokens of the context a conversation takes: as the last answer's usage says, or as the server's
// tokenizer counts what would be sent.
import { useEffect, useRef, useState } from 'preact/hooks'
import { countTokens } from '../api/client'
import type { Conversation, Message } from './conversations'
import { draftOf } from './drafts'
import type { Live } from './generation'
import { contextLength, requestedModel } from './model'
import { chatBody, userText } from './request'
import { settings } from './settings'

const TYPING_MS = 400

// Null where the server cannot say: an older one, or none.
async function count(body: object): Promise<number | null> {
  try {
    return await countTokens({ ...(requestedModel.value ? { model: requestedModel.value } : {}), ...body })
  } catch {
    return null
  }
}

// What the conversation takes without its draft. `live`: of an answer that is being written only what was there before.
async function countConversation(conversation: Conversation, live: Live | null): Promise<number | null> {
  const isBegun = (message: Message) => message.id !== live?.messageId || message.content !== ''
  const messages = conversation.messages.filter(isBegun)
  if (!messages.length && !conversation.system.trim()) return 0
  try {
    const { messages: sent, ...rest } = chatBody({ ...conversation, messages }, settings.value)
    return sent.length ? await count({ messages: sent, ...('tools' in rest ? { tools: rest.tools } : {}) }) : 0
  } catch {
    return null // tools that are no JSON
  }
}

export function useConversationTokens(conversation: Conversation | undefined, live: Live | null): number | null {
  const [tokens, setTokens] = useState<number | null>(null)
  const last = conversation?.messages.at(-1)
  const asked = `${conversation?.system} ${conversation?.unsent} ${settings.value.tools}`
  const seen = useRef({ id: '', asked: '' })
  const context = contextLength.value
  const isWritten = live !== null
  useEffect(() => {
    if (!conversation || context === null) return setTokens(conversation ? null : 0)
    const isSame = seen.current.id !== conversation.id || seen.current.asked === asked
    seen.current = { id: conversation.id, asked }
    const known = last?.speed?.totalTokens
    if (!isWritten && known && isSame) return setTokens(known)
    let isWanted = true
    void countConversation(conversation, live).then((n) => isWanted && setTokens(n))
    return () => (isWanted = false)
  }, [conversation?.id, last?.id, last?.speed?.totalTokens, asked, isWritten, context])
  return tokens
}

export function useDraftTokens(id: string | null): number {
  const [tokens, setTokens] = useState(0)
  const draft = draftOf(id)
  const text = userText(draft.text, draft.files)
  const isKnown = contextLength.value !== null
  useEffect(() => {
    if (!text || !isKnown) return setTokens(0)
    let isWanted = true
    const timer = setTimeout(async () => {
      const n = await count({ content: text })
      if (isWanted) setTokens(n ?? 0)
    }, TYPING_MS)
    return () => {
      isWanted = false
      clearTimeout(timer)
    }
  }, [text, isKnown])
  return tokens
}
