// app.tsx  The frame of the page: navigation, banners, dialogs, and the screen in the middle.
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { ChatScreen } from './chat/screen'
import { isPanelOpen, SettingsPanel, uncoverScreen } from './chat/settings_panel'
import { newConversation, Sidebar } from './chat/sidebar'
import { closeArtefact, openedArtefact } from './artefacts/open'
import { t } from './i18n'
import { addressOf } from './store/address'
import { openConversation, openId, storageFailed } from './store/conversations'
import { isBeingWritten, stop } from './store/generation'
import { collections } from './store/collections'
import { canRate } from './store/learning'
import { canLearn } from './store/memory'
import { chatModel } from './store/model'
import { odo, openOdo } from './store/odo'
import { isOnline, modelList } from './store/session'
import { Announcer } from './ui/announcer'
import { ConfirmDialog, KeyDialog } from './ui/dialog'
import { Book, Bubble, Folder, Fork, Gear, Menu, Pulse } from './ui/icons'
import { lazy } from './ui/lazy'
import { NoticeBar } from './ui/notice'
import { filesAddress, screen, type Screen } from './ui/route'

const LazyFiles = lazy(() => import('./files/screen').then((module) => module.FilesScreen))
const LazyGuide = lazy(() => import('./guide/screen').then((module) => module.GuideScreen))
const LazyImprove = lazy(() => import('./improve/screen').then((module) => module.ImproveScreen))
const LazyMemory = lazy(() => import('./memory/screen').then((module) => module.MemoryScreen))
const LazyOdo = lazy(() => import('./odo/screen').then((module) => module.OdoScreen))
const LazyStatus = lazy(() => import('./status/screen').then((module) => module.StatusScreen))

function Banner() {
  const text = !isOnline.value ? t('connectionLost') : storageFailed.value ? t('storageFailed') : null
  // Always there, so that screen readers hear when it fills.
  return (
    <div role="alert" class="banner-place">
      {text && <p class="banner">{text}</p>}
    </div>
  )
}

function TopBar({ isMenuShown, onMenu }: { isMenuShown: boolean; onMenu: () => void }) {
  const isHere = (name: Screen) => (screen.value === name ? 'page' : undefined)
  return (
    <header class="top">
      <button
        type="button"
        class="quiet round menu"
        aria-label={t('menu')}
        aria-expanded={isMenuShown}
        aria-controls="sidebar"
        onClick={onMenu}
      >
        <Menu />
      </button>
      <span class="brand">Chimère</span>
      <span class="model-name">
        {(chatModel.value ?? modelList.value[0])?.id ?? ''}
        {odo.value && openOdo() && ' · odo'}
      </span>
      <nav aria-label={t('page')}>
        <a href={addressOf(openId.value)} aria-current={isHere('chat')}>
          <Bubble /> <span>{t('chat')}</span>
        </a>
        {(canLearn.value || canRate.value) && (
          <a href="#/memory" aria-current={isHere('memory')}>
            <Book /> <span>{t('memoryScreen')}</span>
          </a>
        )}
        {collections.value && (
          <a href={filesAddress()} aria-current={isHere('files')}>
            <Folder /> <span>{t('files')}</span>
          </a>
        )}
        {odo.value && (
          <a href="#/odo" aria-current={isHere('odo')}>
            <Fork /> <span>{t('odo')}</span>
          </a>
        )}
        <a href="#/status" aria-current={isHere('status')}>
          <Pulse /> <span>{t('status')}</span>
        </a>
      </nav>
      <button
        type="button"
        class="quiet round"
        aria-label={t('settings')}
        aria-expanded={isPanelOpen.value}
        onClick={() => (isPanelOpen.value = !isPanelOpen.value)}
      >
        <Gear />
      </button>
    </header>
  )
}

// Escape closes what is open on top, then stops the answer.
function onKey(event: KeyboardEvent) {
  if (event.key === 'Escape' && !event.defaultPrevented && !document.querySelector('dialog[open]')) {
    if (openId.value && isBeingWritten(openId.value)) stop(openId.value)
    else if (openedArtefact.value) closeArtefact()
    else isPanelOpen.value = false
  }
  if (event.altKey && event.key.toLowerCase() === 'n') {
    event.preventDefault()
    newConversation()
  }
}

const isSearchKey = (event: KeyboardEvent) => (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k'

export function App() {
  const [isMenuShown, setIsMenuShown] = useState(false)
  const [searches, setSearches] = useState(0) // how often the search was asked for
  // As soon as the menu is there: the next key belongs to the search already.
  useLayoutEffect(() => {
    if (searches) document.querySelector<HTMLElement>('.sidebar input[type=search]')?.focus()
  }, [searches])
  useEffect(() => {
    const onAnyKey = (event: KeyboardEvent) => {
      if (!isSearchKey(event)) return onKey(event)
      event.preventDefault()
      setIsMenuShown(true)
      setSearches((n) => n + 1)
    }
    addEventListener('keydown', onAnyKey)
    return () => removeEventListener('keydown', onAnyKey)
  }, [])
  useEffect(() => {
    const onLeave = () => {
      setIsMenuShown(false)
      uncoverScreen()
    }
    addEventListener('hashchange', onLeave)
    return () => removeEventListener('hashchange', onLeave)
  }, [])
  const title = openConversation.value?.title
  useEffect(() => {
    document.title = screen.value === 'chat' && title ? `${title} · Chimère` : 'Chimère'
  }, [title, screen.value])
  return (
    <div class="app">
      <a class="skip" href="#content" onClick={(event) => {
        event.preventDefault()
        document.getElementById('content')?.focus()
      }}>
        {t('skip')}
      </a>
      <TopBar isMenuShown={isMenuShown} onMenu={() => setIsMenuShown(!isMenuShown)} />
      <Banner />
      <div class="middle">
        <Sidebar isShown={isMenuShown} onClose={() => setIsMenuShown(false)} />
        {isMenuShown && <div class="shade" onClick={() => setIsMenuShown(false)} />}
        {screen.value === 'chat' && <ChatScreen />}
        {screen.value === 'memory' && <LazyMemory />}
        {screen.value === 'improve' && <LazyImprove />}
        {screen.value === 'files' && <LazyFiles />}
        {screen.value === 'odo' && <LazyOdo />}
        {screen.value === 'status' && <LazyStatus />}
        {screen.value === 'guide' && <LazyGuide />}
        <SettingsPanel />
      </div>
      <NoticeBar />
      <KeyDialog />
      <ConfirmDialog />
      <Announcer />
    </div>
  )
}
