// escape.ts  Text as HTML that shows it.
const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (c) => escapes[c]!)

// As escapeHtml, but an entity stays what it is.
export const escapeText = (text: string) =>
  text.replace(/[<>"']|&(?!(?:#\d{1,7}|#[Xx][a-fA-F0-9]{1,6}|\w+);)/g, (c) => escapes[c]!)
