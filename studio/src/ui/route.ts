// route.ts  Which screen is shown, kept in the fragment of the address.
import { signal } from '@preact/signals'

export type Screen = 'chat' | 'memory' | 'odo' | 'status' | 'guide'

const SCREENS: Record<string, Screen> = {
  '#/status': 'status',
  '#/memory': 'memory',
  '#/models': 'guide',
  '#/odo': 'odo',
}
const read = (): Screen => SCREENS[location.hash] ?? 'chat'

export const screen = signal<Screen>(read())
addEventListener('hashchange', () => (screen.value = read()))
