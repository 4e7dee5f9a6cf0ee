// route.ts  Which screen is shown, kept in the fragment of the address.
import { signal } from '@preact/signals'

export type Screen = 'chat' | 'status'

const read = (): Screen => (location.hash === '#/status' ? 'status' : 'chat')

export const screen = signal<Screen>(read())
addEventListener('hashchange', () => (screen.value = read()))
