// model_loading.ts  Servers with a folder of models load one when it is first asked for. Looks at how far that is while
// somebody waits.
import { effect } from '@preact/signals'
import { loadModels } from './connection'
import { running } from './generation'
import { chatModel } from './model'

const LOOK_MS = 700

export function watchLoading() {
  let isLooking = false
  const isWaitedFor = () => running.value.size > 0 && !!chatModel.value?.status && chatModel.value.status.value !== 'loaded'
  const look = async () => {
    isLooking = true
    while (isWaitedFor()) {
      await loadModels()
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
    isLooking = false
    await loadModels() // with what is known only of a loaded one: its context, its memory
  }
  effect(() => {
    if (isWaitedFor() && !isLooking) void look()
  })
}
