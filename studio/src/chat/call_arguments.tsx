// call_arguments.tsx  What a tool is called with, as a person can judge it: one text below the other, with their line breaks.

// Signs that are not seen, or change the order of what is seen, could hide what a call does.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g
const seen = (text: string) =>
  text.replace(UNSEEN, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)

function parts(json: string): [name: string, value: string][] {
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [['', json]]
    return Object.entries(value).map(([name, inner]) => [
      name,
      typeof inner === 'string' ? inner : JSON.stringify(inner, null, 2),
    ])
  } catch {
    return [['', json]]
  }
}

export const CallArguments = ({ json }: { json: string }) => (
  <div class="call-arguments">
    {parts(json).map(([name, value]) => (
      <div key={name}>
        {name && <span class="hint mono">{seen(name)}</span>}
        <pre tabIndex={0}>{seen(value)}</pre>
      </div>
    ))}
  </div>
)
