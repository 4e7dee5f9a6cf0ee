// serve_run.h  A server from the moment it listens until a signal ends it: whom it asks in, and what it reads again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/adapter_library.h"
#include "reloads.h"
#include "serve_options.h"
#include "server/server.h"

namespace chimere::apps {

// Those who are asked in by the program itself: the browsers of the network, and that of this desktop.
void invite(const server::Server& server, const ServeOptions& o);

// Adapters that were added to --lora are loaded, those that are gone are unloaded. One that can not be loaded is an
// error, and those before it are unloaded again.
Status take_over_adapters(const std::vector<std::string>& before, const std::vector<std::string>& now,
                          models::AdapterLibrary& library);

// What SIGHUP exchanges beside what every server does: the name of an option, and how. An error leaves all as it was.
struct TakeOver {
  std::string name;
  std::function<Status(const ServeOptions& fresh, const Configuration& configuration)> work;
};

// Until a signal ends it.
void run_server(server::Server& server, ServeOptions& o, Reloads& reloads, const TakeOver& take_over);

}  // namespace chimere::apps
