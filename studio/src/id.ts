// id.ts  Names nobody else has. crypto.randomUUID is missing where a page comes over plain HTTP from another machine.
export function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, '0')).join('')
}
