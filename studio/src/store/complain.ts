// complain.ts  A word about what the server refused, or that it did not answer.
import { ApiError } from '../api/client'
import { t } from '../i18n'
import { notify } from '../ui/notice'

export const complain = (error: unknown) =>
  notify(error instanceof ApiError ? error.message : t('connectionLostShort'), 'error')
