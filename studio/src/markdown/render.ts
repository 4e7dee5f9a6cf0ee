// render.ts  Markdown to HTML that can do nothing: marked makes it, DOMPurify lets through what is on a short list.
// The page's Content-Security-Policy would stop what both missed.
import DOMPurify from 'dompurify'
import { Marked } from 'marked'
import { escapeHtml, escapeText } from './escape'

const TAGS = (
  'a abbr b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img input ins kbd li mark ol p pre ' +
  'q s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var'
).split(' ')
const ATTRIBUTES = 'align alt checked class colspan disabled href open rel rowspan src start target title type'.split(' ')

// Bare tags that Markdown has no sign for.
const HARMLESS = /^<\/?(br|sub|sup|kbd|b|i|u|s|mark|details|summary)\s*\/?>$/i
const PICTURE = /^data:image\/(png|jpeg|gif|webp);base64,/i

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    // HTML in an answer is shown as what it is: text. A page to look at belongs in a code block, which has a preview.
    html: ({ text }) => (HARMLESS.test(text.trim()) ? text : escapeHtml(text)),
    // marked leaves text after an unclosed <kbd> or <script> as it is, for HTML that is meant to work.
    text(token) {
      return 'tokens' in token && token.tokens ? this.parser.parseInline(token.tokens) : escapeText(token.text)
    },
    // Only pictures that the answer itself carries: fetching one would tell its server who reads this.
    image: ({ href, text }) =>
      PICTURE.test(href)
        ? `<img src="${escapeHtml(href)}" alt="${escapeHtml(text)}">`
        : `<a href="${escapeHtml(href)}">${escapeHtml(text || href)}</a>`,
  },
})

DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName === 'A') {
    if (!/^(https?:|mailto:)/i.test(node.getAttribute('href') ?? '')) node.removeAttribute('href')
    node.setAttribute('target', '_blank')
    node.setAttribute('rel', 'noopener noreferrer nofollow')
  }
  if (node.tagName === 'IMG' && !PICTURE.test(node.getAttribute('src') ?? '')) node.removeAttribute('src')
  if (node.tagName === 'INPUT') {
    // Task lists have boxes; nothing else may be an input.
    if (node.getAttribute('type') !== 'checkbox') node.remove()
    node.setAttribute('disabled', '')
    node.setAttribute('aria-label', node.hasAttribute('checked') ? '✓' : '○')
  }
  if (node.hasAttribute?.('class') && !/^(hljs|language)-[\w+#-]+( |$)/.test(node.getAttribute('class')!)) {
    node.removeAttribute('class')
  }
})

// What may be assigned to innerHTML: TrustedHTML where the browser knows it.
export type SafeHtml = string

export function sanitize(html: string): SafeHtml {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_TRUSTED_TYPE: true,
  }) as unknown as SafeHtml
}

export const renderMarkdown = (text: string): SafeHtml => sanitize(marked.parse(text, { async: false }))
