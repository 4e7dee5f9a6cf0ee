// dates.ts  Under which heading of the sidebar a conversation stands.
import { signal } from '@preact/signals'
import { locale, t } from '../i18n'
import type { Conversation } from './conversations'

const DAY_MS = 86_400_000

// Whole days since a moment, as calendars count them: five past midnight is a day after five to.
function daysSince(time: number): number {
  const noon = (at: Date) => Date.UTC(at.getFullYear(), at.getMonth(), at.getDate(), 12)
  return Math.round((noon(new Date(now.value)) - noon(new Date(time))) / DAY_MS)
}

// Looked at once a minute, so that the headings of a page that stays open are right after midnight.
const now = signal(Date.now())
setInterval(() => {
  if (new Date().getDate() !== new Date(now.value).getDate()) now.value = Date.now()
}, 60_000)

function headingOf({ pinned, updated }: Conversation): string {
  if (pinned) return t('pinned')
  const days = daysSince(updated)
  if (days <= 0) return t('today')
  if (days === 1) return t('yesterday')
  if (days <= 7) return t('lastWeek')
  if (days <= 30) return t('lastMonth')
  return new Date(updated).toLocaleDateString(locale.value, { month: 'long', year: 'numeric' })
}

export function groupsOf(list: Conversation[]): [string, Conversation[]][] {
  const groups = new Map<string, Conversation[]>()
  const pinnedFirst = [...list.filter((c) => c.pinned), ...list.filter((c) => !c.pinned)]
  for (const conversation of pinnedFirst) {
    const heading = headingOf(conversation)
    groups.set(heading, [...(groups.get(heading) ?? []), conversation])
  }
  return [...groups]
}
