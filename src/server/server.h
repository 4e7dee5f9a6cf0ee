// server.h  The server as an application sees it: a chat service behind an address.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "orchestrator/chat_service.h"
#include "server/admin/conversation_store.h"
#include "server/batch/batch_store.h"
#include "server/http/api_keys.h"
#include "server/http/http_server.h"
#include "server/http/key_usage.h"
#include "server/http/monitor.h"
#include "server/http/pairing.h"
#include "server/learning/improve_desk.h"
#include "server/routes.h"
#include "server/shelf/model_shelf.h"
#include "server/tracing/tracer.h"

namespace chimere::retrieval {
class Collections;
}

namespace chimere::store {
class Journal;
}

namespace chimere::server {

struct ServerConfig {
  HttpConfig http;
  ApiKeys keys;  // one of them is asked of every client; empty: none
  std::string version;
  std::chrono::milliseconds request_timeout{0};                 // the longest an answer may take; 0: any time
  std::chrono::milliseconds longest_silence = kLongestSilence;  // of a stream (endpoints.h)
  WatchConfig watch;
  std::string lora_folder;           // adapters that clients may load; empty: none
  std::vector<std::string> hosts;    // names beside localhost by which clients without a key may call the server
  std::vector<std::string> origins;  // of web pages that may use it; "*": any, with a key
  std::vector<std::string> aliases;  // further names of the model, `*` for any text; the first plain one is shown
  std::vector<std::string> tags;     // words about the model that its list shows, and that change nothing
  bool verbose = false;              // every answer of a chat says what the model was given
  bool page = true;                  // the web page is served
  bool slots = true;                 // GET /slots tells what is running
  bool strict_model_name = false;    // other names are refused
  bool chat_embeds = false;          // beside an embedder of another model: so does the model, asked by its own name
  std::chrono::seconds keep_responses{3600};  // answers of /v1/responses; 0: none is kept
  std::shared_ptr<Workers> workers;           // null: some of its own
  std::shared_ptr<Pairing> pairing;           // lets browsers in by a code; null: keys alone do
  std::shared_ptr<BatchStore> batches;        // null: none are taken
  // Of several models one is loaded for a batch when nobody has asked for anything for so long.
  std::chrono::milliseconds batches_load_after{30'000};
  odo::Odo* odo = nullptr;  // outlives the server; null: the model alone answers
  // Documents; null: none are kept here; servers of one model alone. They use the embedder of listen().
  std::shared_ptr<retrieval::Collections> collections;
  orchestrator::Embedder* reranker = nullptr;        // a cross-encoder for searches in them, which outlives the server
  std::shared_ptr<ConversationStore> conversations;  // what clients keep here; null: nothing
  std::shared_ptr<store::Journal> journal;           // of answers, to learn from; null: none are kept
  ImproveConfig improve;                             // what is learned from them; servers of one model alone
  std::shared_ptr<KeyUsage> key_usage;               // tokens by key; null: counts that end with the server
  std::shared_ptr<Tracer> tracer;                    // sends spans of requests to a collector; null: nothing is sent
  int rate_limit = 0;  // requests a minute of each key or, without keys, of each address; 0: any number
};

class Server {
 public:
  // Whether listen() would succeed, for those who have minutes of other work to do first.
  static Status check(const ServerConfig& config);
  // The same without a look at the port and the certificate.
  static Status check_rules(const ServerConfig& config);
  // Binds the address. Refuses one beyond this machine without a key. The service outlives the server, and so does an
  // embedder of another model; without one the service's own model embeds.
  static Result<std::unique_ptr<Server>> listen(ServerConfig config, orchestrator::ChatService& service,
                                                orchestrator::Embedder* embedder = nullptr);
  // The same for models that are loaded when they are asked for. The shelf outlives the server.
  static Result<std::unique_ptr<Server>> listen(ServerConfig config, ModelShelf& shelf, std::string default_model = {});
  ~Server();

  // Takes over keys, rate limit, hosts and origins of `config`, if they may be served at this address; else all stays as
  // it was. From any thread.
  Status reload(const ServerConfig& config);

  void run() { http_->run(); }
  void stop() { http_->stop(); }
  // When it was told to stop, after run() has returned.
  std::chrono::steady_clock::time_point stop_began() const { return http_->stop_began(); }
  uint16_t port() const { return http_->port(); }
  std::string url() const { return http_->url(); }
  // Where the orchestrator answers for the model (HttpConfig::side_port); nullopt where there is no such port.
  std::optional<std::string> odo_url() const { return http_->side_url(); }

 private:
  explicit Server(std::chrono::seconds keep_responses) : kept_(keep_responses) {}

  std::shared_ptr<Tracer> tracer_;  // outlives all records
  Monitor monitor_;
  KeptResponses kept_;
  std::shared_ptr<Access> access_;
  std::unique_ptr<HttpHandler> routes_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace chimere::server
