// learning.tsx  Whether the server may keep this user's answers to learn from, how much it has, and the way to erase it.
import { useEffect } from 'preact/hooks'
import { t } from '../i18n'
import { agree, eraseLearned, learning, loadLearning } from '../store/learning'
import { settings } from '../store/settings'
import { confirmThen } from '../ui/dialog'
import { bytes, count } from '../ui/format'

export function LearningSection() {
  const { user } = settings.value
  useEffect(() => void loadLearning(), [user])
  const state = learning.value
  if (!state) return null
  return (
    <section aria-labelledby="learning">
      <h2 id="learning">{t('learningTitle')}</h2>
      {state.mode === 'off' ? (
        <p class="none">{t('learningOff')}</p>
      ) : (
        <>
          <p class="hint">{t('learningHint')}</p>
          <label class="check">
            <input
              type="checkbox"
              checked={state.keeps}
              onChange={(event) => void agree(event.currentTarget.checked)}
            />
            {t('learningMay')}
          </label>
          <p class="hint">
            {t('learningKept', { n: count(state.answers), said: count(state.feedback), size: bytes(state.bytes ?? 0) })}
          </p>
          <p>
            <a href="#/improve">{t('improveTitle')}</a>
          </p>
          {state.answers > 0 && (
            <div class="buttons">
              <button
                type="button"
                class="danger"
                onClick={() =>
                  confirmThen(t('learningEraseSure', { n: state.answers }), t('learningErase'), () => void eraseLearned())
                }
              >
                {t('learningErase')}
              </button>
            </div>
          )}
        </>
      )}
    </section>
  )
}
