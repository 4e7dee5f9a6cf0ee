// improve.ts  What was learned from this user's answers: what was tried, what is in use, and how it is undone.
import { signal } from '@preact/signals'
import * as api from '../api/client'
import type { Improve } from '../api/types'
import { t } from '../i18n'
import { notify } from '../ui/notice'
import { complain } from './complain'
import { loadLearning, owner } from './learning'

// Null: this server learns nothing.
export const improve = signal<Improve | null>(null)

export async function loadImprove() {
  improve.value = await api.improve(owner().user).catch(() => null)
}

async function change(work: Promise<unknown>, said?: string) {
  try {
    await work
    if (said) notify(said)
  } catch (error) {
    complain(error)
  }
  await loadImprove()
}

export const startImproving = (kind: string) => change(api.startImproving({ ...owner(), kind }), t('improveAsked'))
export const rollBack = (kind: string) => change(api.rollBack({ ...owner(), kind }))
export const promote = (run: string) => change(api.promote({ ...owner(), run }))

export async function forgetLearned(conversation?: string) {
  await change(api.forgetLearned({ ...owner(), ...(conversation ? { conversation } : { all: true }) }), t('improveForgotten'))
  await loadLearning()
}
