// sources.tsx  What an answer was given to read beside its question: notes and passages, each with where it is from.
import { t } from '../i18n'
import type { Source } from '../store/conversations'

export const Sources = ({ sources }: { sources: Source[] }) => (
  <details class="sources">
    <summary>{t('sources', { n: sources.length })}</summary>
    <ul>
      {sources.map(({ source, text }, i) => (
        <li key={i}>
          <cite>{source}</cite>
          <p>{text}</p>
        </li>
      ))}
    </ul>
  </details>
)
