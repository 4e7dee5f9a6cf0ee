#include "serve_run.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <thread>
#include <utility>

#include "base/platform/service_manager.h"
#include "open_browser.h"

namespace chimere::apps {
namespace {

// A stop takes two seconds more than answers under way have (--drain), of which the first is for their last words. What
// the engine and the disk are still about then has the rest: a step with a long prompt may take longer, and what is not
// on the disk by then is computed again.
void end_in_time(std::chrono::steady_clock::time_point stop_began, std::chrono::milliseconds grace) {
  std::thread([end = stop_began + grace + std::chrono::milliseconds(1800)] {
    std::this_thread::sleep_until(end);
    std::_Exit(0);
  }).detach();
}

// What a server that runs takes over on SIGHUP. All else holds from the next start on; routes and skills are looked at
// again whenever they are used.
constexpr std::string_view kReloaded[] = {"api-key", "api-keys-file", "rate-limit", "allow-host", "cors"};

Status reload(ServeOptions& o, server::Server& server, const TakeOver& take_over) {
  ServeOptions fresh, nobodys;
  CLI::App app, trial;
  declare_options(app, fresh);
  declare_options(trial, nobodys);
  TRY_ASSIGN(Configuration next, read_configuration(of_line(o.configuration), o.configuration.file, trial));
  TRY(apply_all(next, app, fresh));
  TRY(add_keys(fresh));
  fresh.server.pairing = o.server.pairing;
  fresh.server.http.host = o.server.http.host;  // where we listen, whatever the file says now
  TRY(server::Server::check_rules(fresh.server));
  TRY(take_over.work(fresh, next));
  TRY(server.reload(fresh.server));
  o.adapters = fresh.adapters;
  spdlog::info("reloaded: {} keys, a limit of {} requests a minute, {} allowed hosts, {} lists of origins, {} adapters",
               fresh.server.keys.size(), fresh.server.rate_limit, fresh.server.hosts.size(),
               fresh.server.origins.size(), fresh.adapters.size());
  for (const std::string& name : changed_names(o.configuration, next)) {
    const bool is_taken_over =
        name == take_over.name || std::find(std::begin(kReloaded), std::end(kReloaded), name) != std::end(kReloaded);
    if (!is_taken_over) spdlog::warn("'{}' has changed: that holds from the next start on", name);
  }
  o.configuration = std::move(next);
  return Ok{};
}

}  // namespace

Status take_over_adapters(const std::vector<std::string>& before, const std::vector<std::string>& now,
                          models::AdapterLibrary& library) {
  const auto is_in = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  std::vector<std::string> gone, added;
  std::copy_if(before.begin(), before.end(), std::back_inserter(gone), [&](const auto& a) { return !is_in(now, a); });
  std::copy_if(now.begin(), now.end(), std::back_inserter(added), [&](const auto& a) { return !is_in(before, a); });
  const auto unload = [&](const std::vector<std::string>& arguments) {
    for (const std::string& text : arguments) {
      if (const auto argument = models::parse_adapter_argument(text); argument) {
        if (const Status s = library.unload(argument->name); !s) spdlog::debug("{}", s.error().message);
      }
    }
  };
  unload(gone);  // first: another file may come under the same name
  if (Status s = load_adapters(added, library); !s) {
    unload(added);
    TRY(load_adapters(gone, library));
    return s;
  }
  return Ok{};
}

void invite(const server::Server& server, const ServeOptions& o) {
  server::Pairing* pairing = o.server.pairing.get();
  if (pairing) show_invitation(*pairing, server);
  if (!o.open || open_browser(page_address(pairing, server))) return;
  spdlog::warn("xdg-open was not found: open {} yourself", server.url());
}

void run_server(server::Server& server, ServeOptions& o, Reloads& reloads, const TakeOver& take_over) {
  reloads.start([&] {
    if (const Status s = reload(o, server, take_over); !s) {
      spdlog::error("not reloaded, all stays as it was: {}", s.error().message);
    }
  });
  tell_service_manager("READY=1");
  server.run();
  tell_service_manager("STOPPING=1");
  reloads.stop();
  spdlog::info("stopped");
  end_in_time(server.stop_began(), o.server.http.shutdown_grace);
}

}  // namespace chimere::apps
