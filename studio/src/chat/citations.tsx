// citations.tsx  What an answer rests on, numbered as the answer counts: links to pages, names of files.
import { t } from '../i18n'
import type { Citation } from '../store/run'

const isLink = (url: string | undefined): url is string => /^https?:\/\//i.test(url ?? '')

function Title({ title, url }: Citation) {
  if (!isLink(url)) return <cite>{title}</cite>
  return (
    <a href={url} target="_blank" rel="noopener noreferrer nofollow">
      {title}
    </a>
  )
}

export const Citations = ({ list }: { list: Citation[] }) => (
  <section class="cited" aria-label={t('cited')}>
    <h3>{t('cited')}</h3>
    <ol>
      {list.map((citation, i) => (
        <li key={i} value={citation.n}>
          <Title {...citation} />
          {citation.snippet && <p class="hint">{citation.snippet}</p>}
        </li>
      ))}
    </ol>
  </section>
)
