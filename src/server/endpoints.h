// endpoints.h  The families of endpoints, one file each. A new endpoint is a route added in one of these; a new family
// is a file, a line here and a line in routes.cpp.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "orchestrator/chat_service.h"
#include "server/http/api_error.h"
#include "server/http/monitor.h"
#include "server/http/router.h"
#include "server/http/workers.h"
#include "server/protocols/kept_responses.h"
#include "server/protocols/shared/model_names.h"

namespace chimere::odo {
class Odo;  // odo/odo.h
}

namespace chimere::retrieval {
class Collections;
}

namespace chimere::store {
class Journal;
}

namespace chimere::server {

// A stream that has nothing to say for so long, as its prompt waits or is read, sends its head, if it has not yet, and a
// comment: who stands between would take it for dead. Once the head has left, no balancer can send the request elsewhere.
inline constexpr std::chrono::milliseconds kLongestSilence{10'000};

class Access;             // http/access.h
class BatchStore;         // batch/batch_store.h
class ConversationStore;  // admin/conversation_store.h
class ImproveDesk;        // learning/improve_desk.h

// What endpoints work with; all of it outlives the routes.
struct Services {
  orchestrator::ChatService& chat;
  orchestrator::Embedder& embedder;  // of another model where there is one, else that of `chat`
  Monitor& monitor;
  std::string version;
  // An answer takes no longer than this, whatever its request says; 0: any time.
  std::chrono::milliseconds request_timeout{0};
  std::string lora_folder = {};  // where adapters that a client asks for are; empty: it may not
  ModelNames names = {};
  KeptResponses* kept = nullptr;  // never null
  std::vector<std::string> tags = {};
  bool page = true;
  bool slots = true;
  bool verbose = false;
  bool keeps_alive = false;   // `keep_alive` of a request has been followed
  size_t max_body_bytes = 0;  // of a request
  std::chrono::milliseconds longest_silence = kLongestSilence;

  odo::Odo* odo = nullptr;                                   // null: the model alone answers
  std::shared_ptr<ConversationStore> conversations = {};     // null: none are kept here
  std::shared_ptr<BatchStore> batches = {};                  // null: none are taken
  std::shared_ptr<retrieval::Collections> collections = {};  // of documents; null: none are kept here
  std::shared_ptr<store::Journal> journal = {};              // of answers, to learn from; null: none are kept

  std::shared_ptr<ImproveDesk> improve = {};  // learns from them; null: nothing is learned

  std::shared_ptr<Workers> workers = std::make_shared<Workers>();

  // The model, held by whoever has it; for runs, which may outlast their answer. Null: it stays until the server ends.
  std::function<std::shared_ptr<orchestrator::ChatService>()> hold_chat = {};

  // What holds for every request that generates: its latest end, and that clients with different keys share no cached
  // state.
  void limit(orchestrator::GenerateOptions& options, const Call& call) const;
  // The one whose vectors a request for a model of this name ("" when it named none) gets.
  orchestrator::Embedder& embedder_for(std::string_view model) const;
  // Who a request counts for: its key; 0 where the server has none.
  static uint64_t owner_of(const Call& call);
  // "fp_..." of the model's file and this program: as long as it stays, equal requests with a seed have equal answers.
  std::string system_fingerprint() const;
};

// What a protocol's parser gives: the call, or why it is none.
template <class T>
using Parsed = std::variant<T, ApiError>;

template <class T>
using ParsedHandler = std::unique_ptr<Answer> (*)(const Services&, Call, T&);
using ErrorWriter = HttpResponse (*)(const ApiError&);

// The answer to a call whose body is parsed first, by a worker when it is large. The handler runs on the I/O thread and
// sees only what could be parsed.
template <class T>
std::unique_ptr<Answer> answer_parsed(const Services& services, Call call,
                                      std::function<Parsed<T>(const std::string& body)> parse, ParsedHandler<T> handler,
                                      ErrorWriter write_error = error_response) {
  const auto then = [services, handler, write_error](Call parsed_call, Parsed<T>& parsed) {
    if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(parsed_call, write_error(*error));
    return handler(services, std::move(parsed_call), std::get<T>(parsed));
  };
  return parse_first<Parsed<T>>(services.workers, std::move(call), std::move(parse), then);
}

// A POST that is answered so.
template <class T>
void add_parsed_route(Router& router, const Services& services, const char* path,
                      std::type_identity_t<std::function<Parsed<T>(const std::string& body)>> parse,
                      ParsedHandler<T> handler, ErrorWriter write_error = error_response) {
  router.add({.method = "POST", .path = path, .handler = [services, parse, handler, write_error](Call call) {
                return answer_parsed<T>(services, std::move(call), parse, handler, write_error);
              }});
}

void add_status_endpoints(Router& router, const Services& services,
                          const std::shared_ptr<Access>& access);         // status_endpoints.cpp
void add_request_endpoints(Router& router, const Services& services);     // request_endpoints.cpp
void add_model_endpoints(Router& router, const Services& services);       // model_endpoints.cpp
void add_generation_endpoints(Router& router, const Services& services);  // generation_endpoints.cpp
void add_token_endpoints(Router& router, const Services& services);       // token_endpoints.cpp
void add_embedding_endpoints(Router& router, const Services& services);   // embedding_endpoints.cpp
void add_lora_endpoints(Router& router, const Services& services);        // lora_endpoints.cpp
void add_engram_endpoints(Router& router, const Services& services);      // engram_endpoints.cpp
void add_cache_endpoints(Router& router, const Services& services);       // cache_endpoints.cpp
void add_sleep_endpoints(Router& router, const Services& services);       // sleep_endpoints.cpp
void add_llama_endpoints(Router& router, const Services& services);       // llama_endpoints.cpp
void add_ollama_endpoints(Router& router, const Services& services);      // ollama_endpoints.cpp

// What the endpoints of the orchestrator show.
struct OdoDesk {
  odo::Odo* odo = nullptr;  // null: there are none
  std::string version;
  std::function<std::optional<retrieval::NoteUsage>()> learned;
  // Who answers where the request is for nobody by name, held while it does; null, or of null: nobody.
  std::function<std::shared_ptr<orchestrator::ChatService>()> model = {};
};
void add_odo_endpoints(Router& router, const OdoDesk& desk);  // odo_endpoints.cpp
// Nothing where there is no store.
void add_batch_endpoints(Router& router, const Services& services);       // batch_endpoints.cpp
void add_collection_endpoints(Router& router, const Services& services);  // collection_endpoints.cpp
// Threads of their own where a database elsewhere may keep them: nobody who sends a large request waits for it, too.
std::shared_ptr<Workers> learning_workers(const std::shared_ptr<store::Journal>& journal,
                                          std::shared_ptr<Workers> workers);
void add_learning_endpoints(Router& router, std::shared_ptr<store::Journal> journal,
                            std::shared_ptr<Workers> workers);         // learning_endpoints.cpp
void add_improve_endpoints(Router& router, const Services& services);  // improve_endpoints.cpp
void add_conversation_endpoints(Router& router, std::shared_ptr<ConversationStore> store,
                                std::shared_ptr<Workers> workers);  // conversation_endpoints.cpp
// Nothing where no browser can be let in so.
void add_pair_endpoints(Router& router, const std::shared_ptr<Access>& access);  // pair_endpoints.cpp
void add_page_endpoints(Router& router);                                         // page_endpoints.cpp

}  // namespace chimere::server
