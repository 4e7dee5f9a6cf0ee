// server.cpp  Routes behind an HTTP server, if the address may be served.
#include "server/server.h"

#include "orchestrator/collection_models.h"
#include "retrieval/collections.h"
#include "server/shelf/lobby.h"

namespace chimere::server {

namespace {

// The model that chats embeds no documents: its vectors do not find what words do not (docs/retrieval.md), and it would
// read all of them. An embedder that scores pairs has no vectors: it reads what words have found.
void give_models(retrieval::Collections& collections, orchestrator::Embedder* embedder,
                 orchestrator::Embedder* reranker) {
  const bool scores = embedder && embedder->scores_pairs();
  if (embedder && !scores) collections.use(orchestrator::text_embedder(*embedder));
  if (!reranker && scores) reranker = embedder;
  if (reranker) collections.use(orchestrator::pair_scorer(*reranker));
}

}  // namespace

Server::~Server() = default;

Status Server::check(const ServerConfig& config) {
  TRY(check_address(config.http));
  return check_rules(config);
}

Status Server::check_rules(const ServerConfig& config) {
  if (config.keys.empty() && !config.pairing && !is_loopback(config.http.host)) {
    return Error{Code::invalid_argument,
                 "host " + config.http.host +
                     " is reachable from other machines: expected an API key (--api-key, CHIMERE_API_KEY), found none"};
  }
  TRY(check_hosts(config.hosts));
  TRY_ASSIGN(const Cors cors, Cors::of(config.origins));
  if (cors.allows_everybody() && config.keys.empty()) {
    return Error{Code::invalid_argument,
                 "--cors *: any page that the browser shows could use this server: expected an API key, found none"};
  }
  TRY(parse_aliases(config.aliases));
  return Ok{};
}

Status Server::reload(const ServerConfig& config) {
  TRY(check_rules(config));
  TRY_ASSIGN(Cors cors, Cors::of(config.origins));
  access_->replace(config.keys, config.rate_limit, config.hosts, std::move(cors));
  return Ok{};
}

Result<std::unique_ptr<Server>> Server::listen(ServerConfig config, orchestrator::ChatService& service,
                                               orchestrator::Embedder* embedder) {
  TRY(check(config));
  TRY_ASSIGN(Cors cors, Cors::of(config.origins));
  TRY_ASSIGN(std::vector<std::string> aliases, parse_aliases(config.aliases));
  auto access = std::make_shared<Access>(std::move(config.keys), config.rate_limit, std::move(config.hosts),
                                         std::move(cors), std::move(config.pairing), std::move(config.key_usage));
  std::unique_ptr<Server> server(new Server(config.keep_responses));
  server->access_ = access;
  server->tracer_ = config.tracer;
  server->monitor_.tracer = config.tracer.get();
  ModelNames names =
      named(service.model_info().name, embedder ? embedder->model_name() : std::string(), std::move(aliases));
  names.is_strict = config.strict_model_name;
  names.chat_embeds = embedder && config.chat_embeds;
  Services services{service,
                    embedder ? *embedder : service.embedder(),
                    server->monitor_,
                    config.version,
                    config.request_timeout,
                    config.lora_folder,
                    std::move(names),
                    &server->kept_,
                    std::move(config.tags),
                    config.page,
                    config.slots,
                    config.verbose};
  services.conversations = config.conversations;
  services.journal = config.journal;
  services.batches = config.batches;
  services.odo = config.odo;
  services.collections = config.collections;
  services.max_body_bytes = config.http.max_body_bytes;
  services.longest_silence = config.longest_silence;
  if (config.collections) give_models(*config.collections, embedder, config.reranker);
  if (config.workers) services.workers = config.workers;
  if (config.improve.in_use && config.journal) {
    services.improve = std::make_shared<ImproveDesk>(std::move(config.improve), server->monitor_, service,
                                                     config.journal, services.workers);
  }
  server->routes_ = std::make_unique<Routes>(services, std::move(access), config.watch);
  TRY_ASSIGN(server->http_, HttpServer::listen(std::move(config.http), *server->routes_));
  return Result<std::unique_ptr<Server>>{std::move(server)};
}

Result<std::unique_ptr<Server>> Server::listen(ServerConfig config, ModelShelf& shelf, std::string default_model) {
  TRY(check(config));
  TRY_ASSIGN(Cors cors, Cors::of(config.origins));
  LobbyConfig lobby;
  TRY_ASSIGN(lobby.aliases, parse_aliases(config.aliases));
  lobby.version = config.version;
  lobby.request_timeout = config.request_timeout;
  lobby.longest_silence = config.longest_silence;
  lobby.lora_folder = config.lora_folder;
  lobby.default_model = std::move(default_model);
  lobby.page = config.page;
  lobby.slots = config.slots;
  lobby.verbose = config.verbose;
  lobby.conversations = config.conversations;
  lobby.journal = config.journal;
  lobby.odo = config.odo;
  lobby.collections = config.collections;
  lobby.batches = config.batches;
  lobby.batches_load_after = config.batches_load_after;
  lobby.max_body_bytes = config.http.max_body_bytes;
  lobby.watch = config.watch;
  lobby.tracer = config.tracer.get();
  if (config.workers) lobby.workers = config.workers;
  auto access = std::make_shared<Access>(std::move(config.keys), config.rate_limit, std::move(config.hosts),
                                         std::move(cors), std::move(config.pairing), std::move(config.key_usage));
  std::unique_ptr<Server> server(new Server(config.keep_responses));
  server->access_ = access;
  server->tracer_ = config.tracer;
  server->routes_ = std::make_unique<Lobby>(shelf, std::move(access), server->kept_, std::move(lobby));
  TRY_ASSIGN(server->http_, HttpServer::listen(std::move(config.http), *server->routes_));
  return Result<std::unique_ptr<Server>>{std::move(server)};
}

}  // namespace chimere::server
