import '@preact/signals'
import { render } from 'preact'
import { App } from './app'
import { keepForOffline } from './offline/register'
import { startAddress } from './store/address'
import { startConnection } from './store/connection'
import { loadConversations } from './store/conversations'
import { answerOthers } from './store/generation'
import { watchLoading } from './store/model_loading'
import { startSync } from './store/sync'
import './styles/base.css'
import './styles/layout.css'
import './styles/chat.css'
import './styles/files.css'
import './styles/markdown.css'
import './styles/memory.css'
import './styles/odo.css'
import './styles/status.css'

startAddress()
render(<App />, document.getElementById('app')!)
void loadConversations()
startConnection()
answerOthers()
watchLoading()
startSync()
keepForOffline()
