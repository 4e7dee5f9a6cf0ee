// screen.tsx  Which models fit which memory: docs/choosing-a-model.md, which is part of the page so that it can be read
// where there is no network.
import { ArtefactPanel } from '../artefacts/panel'
import text from '../choosing-a-model.md?raw'
import { t } from '../i18n'
import { Markdown } from '../markdown/markdown'

export const GuideScreen = () => (
  <div class="chat">
    <main id="content" class="guide" tabIndex={0} aria-label={t('guide')} lang="en">
      <Markdown text={text} isGrowing={false} />
    </main>
    <ArtefactPanel />
  </div>
)
