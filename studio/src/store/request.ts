// request.ts  A conversation as the body of a chat request.
import type { AttachedFile, Conversation, Message } from './conversations'
import { adapters, canLearn, memory } from './memory'
import { requestedModel } from './model'
import { odoFields } from './odo'
import type { Settings } from './settings'
import { sentMessages } from './window'

// A fence longer than any in the text, so that the file cannot end it.
function fenced(file: AttachedFile): string {
  const longest = Math.max(2, ...(file.text.match(/`{3,}/g) ?? []).map((run) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `File ${file.name}:\n${fence}\n${file.text}\n${fence}\n\n`
}

export const userText = (content: string, files: AttachedFile[] = []) => files.map(fenced).join('') + content

function wireMessage(message: Message): object | null {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: userText(message.content, message.files) }
    case 'tool':
      return { role: 'tool', tool_call_id: message.toolCallId, content: message.content }
    case 'assistant': {
      if (!message.content && !message.reasoning && !message.toolCalls?.length) return null
      return {
        role: 'assistant',
        content: message.content,
        ...(message.reasoning ? { reasoning_content: message.reasoning } : {}),
        ...(message.toolCalls?.length
          ? {
              tool_calls: message.toolCalls.map((call) => ({
                id: call.id,
                type: 'function',
                function: { name: call.name, arguments: call.arguments },
              })),
            }
          : {}),
      }
    }
  }
}

// The tools of the panel; throws what JSON.parse or the wrong shape has to say.
export function parseTools(text: string): object[] {
  if (!text.trim()) return []
  const tools: unknown = JSON.parse(text)
  const list = Array.isArray(tools) ? tools : [tools]
  return list.map((tool) => {
    if (tool && typeof tool === 'object' && 'function' in tool) return tool as object
    if (tool && typeof tool === 'object' && 'name' in tool) return { type: 'function', function: tool }
    throw new Error('{"type": "function", "function": {"name": …}}')
  })
}

// Adapters and memory, as far as this server has what was chosen.
function besideTheModel({ lora, engram, user }: Settings): object {
  const chosen = adapters.value.flatMap(({ name }) => (name in lora ? [{ name, scale: lora[name] }] : []))
  const tables = engram.tables.filter((name) => memory.value?.tables.some((table) => table.name === name))
  const passages = memory.value?.passages.find((name) => name === engram.passages)
  const used = {
    ...(tables.length ? { tables } : {}),
    ...(passages ? { passages } : {}),
    ...(canLearn.value && !engram.notes ? { notes: 0 } : {}),
  }
  return {
    ...(chosen.length ? { lora: chosen } : {}),
    ...(canLearn.value ? { user } : {}),
    ...(Object.keys(used).length ? { engram: used } : {}),
  }
}

// What else a token might have been, for whoever asks.
const TOP_TOKENS = 8

export function chatBody(conversation: Conversation, settings: Settings) {
  const messages = sentMessages(conversation).map(wireMessage).filter((m) => m !== null)
  if (conversation.system.trim()) messages.unshift({ role: 'system', content: conversation.system })
  const tools = parseTools(settings.tools)
  return {
    messages,
    ...(requestedModel.value ? { model: requestedModel.value } : {}),
    ...odoFields(conversation.odo),
    ...(tools.length ? { tools } : {}),
    ...(settings.thinking === 'auto' ? {} : { enable_thinking: settings.thinking === 'on' }),
    ...(settings.thinkingMode ? { thinking_control: { mode: settings.thinkingMode } } : {}),
    ...(settings.heat === 'on' ? { token_stats: true, logprobs: true, top_logprobs: TOP_TOKENS } : {}),
    ...settings.sampling,
    ...besideTheModel(settings),
  }
}
