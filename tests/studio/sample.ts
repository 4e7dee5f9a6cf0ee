// sample.ts  An answer with a bit of everything.
export const sampleAnswer = `## Recurrent layers in one page

A **Gated DeltaNet** layer keeps a *matrix* instead of a list of keys and values. Each token decays it and writes one
correction, so the cost of a token does not grow with the context ([more](https://example.org/gdn)).

1. decay: \`S = a * S\`
2. correct: write only what the state does not know yet
3. read: \`o = q * S\`

| layer | state | cost of a token |
|---|---|---|
| attention | grows | grows |
| Gated DeltaNet | 64 x 64 | constant |

\`\`\`python
def step(S, q, k, v, a, b):
    """One token: decay, correct, read."""
    S = a * S                      # forget
    S = S + b * outer(v - S @ k, k)
    return S, S @ q
\`\`\`

> The state is small, so a conversation can be kept, copied and resumed cheaply.

\`\`\`mermaid
graph TD
  A[Prompt] --> B{Seen before?}
  B -->|yes| C(Restore state)
  B -->|no| D(Compute)
  C --> E[Answer]
  D --> E
\`\`\`
`
