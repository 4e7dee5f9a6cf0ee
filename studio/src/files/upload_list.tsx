// upload_list.tsx  What is on its way into a collection, and what came of it.
import { t } from '../i18n'
import { cancelUpload, clearEnded, isEnded, uploads, type Upload } from '../store/uploads'

const WORDS = { waits: 'uploadWaits', sending: 'uploadSending', indexing: 'uploadIndexing', cancelled: 'uploadCancelled' } as const

function UploadEntry({ upload }: { upload: Upload }) {
  const { id, name, state, sent, words } = upload
  const percent = Math.floor(sent * 100)
  return (
    <li class="upload" data-state={state}>
      <div class="text">
        <p class="name">{name}</p>
        {/* While the server reads it nobody knows how long that takes. */}
        {state === 'sending' && <progress aria-label={name} max={100} value={percent} />}
        {state === 'indexing' && <progress aria-label={name} />}
        <p class={state === 'failed' ? 'problem' : 'hint'}>{state === 'done' || state === 'failed' ? words : t(WORDS[state], { n: percent })}</p>
      </div>
      {!isEnded(upload) && (
        <button
          type="button"
          class="quiet small"
          aria-label={t('uploadCancel', { name })}
          onClick={() => {
            document.getElementById('uploads')?.focus() // the button goes away
            cancelUpload(id)
          }}
        >
          {t('cancel')}
        </button>
      )}
    </li>
  )
}

export function UploadList({ collection }: { collection: string }) {
  const list = uploads.value.filter((one) => one.collection === collection)
  if (!list.length) return null
  return (
    <section class="uploads" aria-labelledby="uploads">
      <h2 id="uploads" tabIndex={-1}>
        {t('uploads')}
      </h2>
      <ul>
        {list.map((upload) => (
          <UploadEntry key={upload.id} upload={upload} />
        ))}
      </ul>
      {list.every(isEnded) && (
        <div class="buttons wrap">
          <button
            type="button"
            class="small"
            onClick={() => {
              document.getElementById('documents')?.focus() // the list goes away
              clearEnded(collection)
            }}
          >
            {t('uploadsClear')}
          </button>
        </div>
      )}
    </section>
  )
}
