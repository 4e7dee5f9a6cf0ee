// serve_run.h  A server from the moment it listens until a signal ends it: whom it asks in, and what it reads again.
#pragma once

#include "models/adapter_library.h"
#include "reloads.h"
#include "serve_options.h"
#include "server/server.h"

namespace chimere::apps {

// Those who are asked in by the program itself: the browsers of the network, and that of this desktop.
void invite(const server::Server& server, const ServeOptions& o);

// Until a signal ends it. `adapters` is null where models come and go.
void run_server(server::Server& server, ServeOptions& o, Reloads& reloads, models::AdapterLibrary* adapters);

}  // namespace chimere::apps
