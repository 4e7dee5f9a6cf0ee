// read.ts  Values of unknown shape, from a file or a server, read with care: what is not as expected is nothing.

export const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

export const text = (value: unknown) => (typeof value === 'string' ? value : '')

export const number = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : null)

export const objects = (value: unknown) => (Array.isArray(value) ? value.filter(isObject) : [])
