// endpoints.h  The families of endpoints, one file each. A new endpoint is a route added in one of these; a new family
// is a file, a line here and a line in routes.cpp.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "orchestrator/chat_service.h"
#include "server/http/monitor.h"
#include "server/http/router.h"
#include "server/http/workers.h"
#include "server/protocols/kept_responses.h"
#include "server/protocols/model_names.h"

namespace chimere::server {

// What endpoints work with; all of it outlives the routes.
struct Services {
  orchestrator::ChatService& chat;
  orchestrator::Embedder& embedder;
  Monitor& monitor;
  std::string version;
  // An answer takes no longer than this, whatever its request says; 0: any time.
  std::chrono::milliseconds request_timeout{0};
  std::string lora_folder = {};  // where adapters that a client asks for are; empty: it may not
  ModelNames names = {};
  KeptResponses* kept = nullptr;  // never null

  std::shared_ptr<Workers> workers = std::make_shared<Workers>();

  // What holds for every request that generates: its latest end, and that clients with different keys share no cached
  // state.
  void limit(orchestrator::GenerateOptions& options, const Call& call) const;
  // Who a request counts for: its key; 0 where the server has none.
  static uint64_t owner_of(const Call& call);
  // "fp_..." of the model's file and this program: as long as it stays, equal requests with a seed have equal answers.
  std::string system_fingerprint() const;
};

// A POST whose body is parsed first, by a worker when it is large; the handler runs on the I/O thread.
template <class Parsed>
void add_parsed_route(Router& router, const Services& services, const char* path,
                      typename ParsedLater<Parsed>::Parse parse,
                      std::unique_ptr<Answer> (*handler)(const Services&, Call, Parsed&)) {
  const auto then = [services, handler](Call call, Parsed& parsed) {
    return handler(services, std::move(call), parsed);
  };
  router.add({.method = "POST", .path = path, .handler = [workers = services.workers, parse, then](Call call) {
                return parse_first<Parsed>(workers, std::move(call), parse, then);
              }});
}

void add_status_endpoints(Router& router, const Services& services);      // status_endpoints.cpp
void add_request_endpoints(Router& router, const Services& services);     // request_endpoints.cpp
void add_model_endpoints(Router& router, const Services& services);       // model_endpoints.cpp
void add_generation_endpoints(Router& router, const Services& services);  // generation_endpoints.cpp
void add_token_endpoints(Router& router, const Services& services);       // token_endpoints.cpp
void add_embedding_endpoints(Router& router, const Services& services);   // embedding_endpoints.cpp
void add_lora_endpoints(Router& router, const Services& services);        // lora_endpoints.cpp
void add_engram_endpoints(Router& router, const Services& services);      // engram_endpoints.cpp
void add_cache_endpoints(Router& router, const Services& services);       // cache_endpoints.cpp
void add_page_endpoints(Router& router);                                  // page_endpoints.cpp

}  // namespace chimere::server
