// model.ts  The model that answers: the chosen one while the server has it, else the server's first.
import { computed } from '@preact/signals'
import { chatModels } from './session'
import { settings } from './settings'

export const chatModel = computed(
  () => chatModels.value.find((m) => m.id === settings.value.model) ?? chatModels.value[0],
)
export const contextLength = computed(() => chatModel.value?.context_length ?? null)

// What a request names: nothing leaves the choice to the server, which is the first of its list, but on a server with a
// folder of models the one that was used last. Before its list has come the old choice may be right.
export const requestedModel = computed(() => {
  const { model } = settings.value
  if (chatModel.value?.status) return chatModel.value.id
  return !chatModels.value.length || chatModel.value?.id === model ? model : ''
})
