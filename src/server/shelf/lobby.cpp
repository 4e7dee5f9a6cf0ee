// lobby.cpp  Names, and those who wait for a model.
#include "server/shelf/lobby.h"

#include <algorithm>
#include <utility>

#include "odo/odo.h"
#include "server/admin/collection_desk.h"
#include "server/admin/request_desk.h"
#include "server/admin/stall_watch.h"
#include "server/admin/status_json.h"
#include "server/batch/batch_desk.h"
#include "server/odo/start_chat.h"
#include "server/shelf/body_field.h"
#include "server/shelf/shelf_json.h"

namespace chimere::server {
namespace {

constexpr size_t kMaxShownName = 128;

ApiError unknown_model(const std::string& name, const std::string& names, const std::string& field = "model") {
  return {404, field + ": expected one of " + names + ", found '" + name.substr(0, kMaxShownName) + "'",
          "invalid_request_error", field, "model_not_found"};
}

// Whoever waits for its next answer would wait for it to be loaded again.
ApiError in_use(const std::string& name) {
  return {409, "model '" + name + "' is answering: an admin's key may unload it now, others when nobody uses it",
          "invalid_request_error", "model", "model_in_use"};
}

// Only Ollama's requests have one.
std::optional<std::chrono::seconds> keep_alive(const HttpRequest& request) {
  if (!request.path.starts_with("/api/")) return std::nullopt;
  return keep_alive_of(top_level_value(request.body, "keep_alive"));
}

ApiError not_loaded(const Error& error) {
  if (error.code == Code::not_found) {
    return {404, without_folders(error.message), "invalid_request_error", "model", "model_not_found"};
  }
  ApiError api = to_api_error(error);
  api.param = "model";
  if (api.code.empty()) api.code = "model_not_loaded";
  if (api.status == 400) api.status = 500;  // the request is not to blame
  return api;
}

// The orchestrator's names behind the files, with the model that answers where a request names none.
Json with_runs(Json json, odo::Odo* odo, const std::string& parent) {
  if (!odo) return json;
  for (const std::string& name : odo->model_names()) {
    json["data"].push_back({{"id", name},
                            {"object", "model"},
                            {"created", int64_t{0}},
                            {"owned_by", "chimere"},
                            {"capabilities", Json::array({"chat"})},
                            {"parent", parent}});
  }
  return json;
}

}  // namespace

// Holds the request until its model is there. Destroyed in the order of its fields from the last: the answer, then the
// use of the model.
class Lobby::WaitingAnswer : public Answer {
 public:
  WaitingAnswer(Lobby& lobby, std::string name, HttpRequest request, const Wake& wake, bool is_of_batch = false)
      : lobby_(lobby),
        name_(std::move(name)),
        is_of_batch_(is_of_batch),
        request_(std::move(request)),
        wake_(wake),
        ticket_(lobby.shelf_.ask(name_, wake, keep_alive(request_))) {
    lobby_.waiting_.insert(this);
  }
  ~WaitingAnswer() override {
    lobby_.waiting_.erase(this);
    ticket_->close();
  }

  Piece poll() override {
    if (inner_) return inner_->poll();
    if (is_cancelled_) return refusal({400, "the request was cancelled", "invalid_request_error", "", "cancelled"});
    auto given = ticket_->take();
    if (!given) return {};
    lobby_.waiting_.erase(this);
    if (!*given) return refusal(not_loaded(given->error()));
    lease_.emplace(std::move(**given));
    Room& room = lobby_.room_of(**lease_);
    lobby_.tell_counts(request_.path, room);
    if (auto refused = is_of_batch_ ? std::nullopt : room.routes->refuse(request_)) {
      return {std::move(*refused), {}, true};
    }
    inner_ = room.routes->handle(std::move(request_), wake_);
    return inner_->poll();
  }
  void tick(std::chrono::steady_clock::duration unread) override {
    if (inner_) inner_->tick(unread);
  }

  // While it waits.
  const std::string& id() const { return request_.id; }
  bool generates() const { return request_.method == "POST"; }
  Json entry() const {
    return {{"id", request_.id},
            {"model", name_},
            {"state", "loading"},
            {"thinking", false},
            {"prompt_tokens", 0},
            {"cached_tokens", 0},
            {"completion_tokens", 0},
            {"age_seconds", std::chrono::duration<double>(Monitor::Clock::now() - began_).count()},
            {"user", nullptr},
            {"client", request_.client.empty() ? Json(nullptr) : Json(request_.client)}};
  }
  void cancel() {
    is_cancelled_ = true;
    wake_();
  }

 private:
  Piece refusal(const ApiError& error) { return {lobby_.logged(request_, shaped_for(request_, error)), {}, true}; }

  Lobby& lobby_;
  const std::string name_;
  const bool is_of_batch_;  // its key was let in when the batch was made
  HttpRequest request_;
  const Wake wake_;
  const Monitor::Clock::time_point began_ = Monitor::Clock::now();
  bool is_cancelled_ = false;
  const std::shared_ptr<ModelShelf::Ticket> ticket_;
  std::optional<ModelShelf::Lease> lease_;
  std::unique_ptr<Answer> inner_;
};

Lobby::Lobby(ModelShelf& shelf, std::shared_ptr<Access> access, KeptResponses& kept, LobbyConfig config)
    : shelf_(shelf), access_(std::move(access)), kept_(kept), config_(std::move(config)) {
  monitor_.tracer = config_.tracer;
  add_own_endpoints();
}

Lobby::Room& Lobby::room_of(ModelShelf::Loaded& model) {
  if (!model.attached) {
    auto room = std::make_shared<Room>();
    room->monitor.tracer = config_.tracer;
    room->monitor.on_end = [this] {
      if (tell_end_) tell_end_();
    };
    orchestrator::ChatService& chat = *model.service;
    room->services.reset(new Services{chat, chat.embedder(), room->monitor, config_.version});
    Services& services = *room->services;
    services.request_timeout = config_.request_timeout;
    services.longest_silence = config_.longest_silence;
    services.lora_folder = config_.lora_folder;
    services.names = named(chat.model_info().name, {}, {model.file.name});
    services.kept = &kept_;
    services.page = false;  // the lobby has it
    services.slots = config_.slots;
    services.verbose = config_.verbose;
    services.workers = config_.workers;
    services.journal = config_.journal;
    services.keeps_alive = true;
    services.odo = config_.odo;
    services.hold_chat = [this, name = model.file.name]() -> std::shared_ptr<orchestrator::ChatService> {
      auto lease = shelf_.use(name);
      if (!lease) return nullptr;
      const auto held = std::make_shared<ModelShelf::Lease>(std::move(*lease));
      return {held, (*held)->service.get()};
    };
    room->routes = std::make_unique<Routes>(services, access_, config_.watch);
    model.attached = room;
  }
  return *std::static_pointer_cast<Room>(model.attached);
}

void Lobby::add_own_endpoints() {
  const auto get = [this](const char* path, const std::function<Json(ModelShelf&)>& write, bool needs_key = true) {
    own_.add({.method = "GET",
              .path = path,
              .handler = [this, write](Call call) { return answer_now(call, json_response(write(shelf_))); },
              .needs_key = needs_key,
              .is_polled = true});
  };
  add_watching();
  const auto all_models = [this](ModelShelf& shelf) {
    return with_runs(shelf_models(shelf), config_.odo, default_name());
  };
  get("/v1/models", all_models);
  get("/api/tags", shelf_tags);
  get("/api/ps", shelf_running);
  get("/health", shelf_health, false);
  Router& router = own_;
  const auto alive = [this](Call call) { return answer_now(call, probe_response(stands_still() ? kStandsStill : "")); };
  const auto ready = [this](Call call) {
    const char* problem = stands_still() ? kStandsStill : has_files() ? "" : "the folder of models has none";
    return answer_now(call, probe_response(problem));
  };
  router.add({.method = "GET", .path = "/livez", .handler = alive, .needs_key = false, .is_polled = true});
  router.add({.method = "GET", .path = "/readyz", .handler = ready, .needs_key = false, .is_polled = true});
  router.add({.method = "GET", .path = "/v1/models/{id}", .handler = [this, all_models](Call call) {
                const std::string asked = unescaped_part(call.parameter);
                const bool is_run = config_.odo && odo::Odo::is_odo(asked);
                const auto name = is_run ? asked : resolve(asked);
                const Json list = all_models(shelf_);
                for (const Json& model : list["data"]) {
                  if (name && model["id"] == *name) return answer_now(call, json_response(model));
                }
                return answer_now(call, error_response(unknown_model(call.parameter, names())));
              }});
  router.add({.method = "POST", .path = "/models/unload", .handler = [this](Call call) {
                const std::string name = top_level_text(call.request.body, "model").value_or("");
                if (!shelf_.find(name)) return answer_now(call, error_response(unknown_model(name, names())));
                if (!call.request.is_admin && users_of(name) > 0) return answer_now(call, error_response(in_use(name)));
                return answer_now(call, json_response(Json{{"success", shelf_.unload(name)}}));
              }});
  router.add({.method = "POST", .path = "/models/load", .handler = [this](Call call) {
                const std::string name = top_level_text(call.request.body, "model").value_or("");
                if (!shelf_.find(name)) return answer_now(call, error_response(unknown_model(name, names())));
                shelf_.ask(name, {});
                return answer_now(call, json_response(Json{{"success", true}}));
              }});
  add_batch_endpoints(own_, BatchDesk{config_.batches, config_.workers});
  add_odo_endpoints(own_, {config_.odo, config_.version, [this]() -> std::optional<retrieval::NoteUsage> {
                             const auto latest = shelf_.latest();
                             return latest ? (*latest)->service->memory().usage() : std::nullopt;
                           }});
  add_conversation_endpoints(own_, config_.conversations, config_.workers);
  add_learning_endpoints(own_, config_.journal, learning_workers(config_.journal, config_.workers));
  add_collection_endpoints(
      own_, {config_.collections, config_.batches, &monitor_, config_.request_timeout, config_.max_body_bytes});
  add_pair_endpoints(own_, access_);
  if (config_.page) add_page_endpoints(own_);
}

// Those who watch load nothing, and see the folder before anything is loaded.
void Lobby::add_watching() {
  const auto add = [this](const char* path, const std::function<HttpResponse(const HttpRequest&)>& write) {
    own_.add({.method = "GET",
              .path = path,
              .handler = [write](Call call) { return answer_now(call, write(call.request)); },
              .is_polled = true});
  };
  add("/v1/status", [this](const HttpRequest& request) { return json_response(status(request)); });
  add_requests();
  add("/metrics", [](const HttpRequest&) {
    return HttpResponse{200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}}, "# No model is loaded.\n"};
  });
}

// Of all models, and of those who wait for one: whoever ends a request need not know where it runs.
void Lobby::add_requests() {
  RequestDesk desk;
  desk.each = [this](const auto& look) {
    for (const ModelShelf::Lease& lease : shelf_.loaded()) {
      if (lease->attached) look(*room_of(*lease).services, lease->file.name);
    }
  };
  desk.outside = [this] {
    std::vector<Json> entries;
    for (const WaitingAnswer* answer : waiting_) {
      if (answer->generates()) entries.push_back(answer->entry());
    }
    return entries;
  };
  desk.cancel_outside = [this](const std::string& id) {
    bool any = false;
    for (WaitingAnswer* answer : waiting_) {
      if (!answer->generates() || answer->id() != id) continue;
      answer->cancel();
      any = true;
    }
    return any;
  };
  add_request_endpoints(own_, desk);
}

void Lobby::tell_counts(const std::string& path, Room& room) const {
  if (path != "/metrics") return;
  room.monitor.collections = monitor_.collections;
  room.monitor.documents_added = monitor_.documents_added;
  room.monitor.search_seconds = monitor_.search_seconds;
  room.monitor.batch_requests_completed = monitor_.batch_requests_completed;
  room.monitor.batch_requests_failed = monitor_.batch_requests_failed;
}

// All models, and what a server of one model says, of the one that was used last.
Json Lobby::status(const HttpRequest& request) {
  Json json = Json::object();
  if (const auto latest = shelf_.latest()) json = status_json(*room_of(**latest).services);
  json["version"] = config_.version;
  json["uptime_seconds"] = std::chrono::duration<double>(Monitor::Clock::now() - monitor_.started).count();
  json["models"] = shelf_states(shelf_);
  json["keys"] = keys_json(*access_, request);
  return json;
}

Router::Match Lobby::own_route(const HttpRequest& request) {
  Router::Match match = own_.find(request.method, request.path);
  if (!match.route) return match;
  const std::string path = match.route->path;
  const auto fields = query_fields(request.query);
  const bool names_one = std::any_of(fields.begin(), fields.end(),
                                     [](const auto& field) { return field.first == "model" && !field.second.empty(); });
  if ((path == "/v1/status" || path == "/v1/requests") && names_one) return {};
  if (path == "/metrics" && (names_one || shelf_.latest())) return {};
  return match;
}

int Lobby::users_of(const std::string& name) {
  int users = 0;
  shelf_.list([&](const ModelShelf::Listed& listed) {
    if (listed.file.name == name) users = listed.users;
  });
  return users;
}

bool Lobby::has_files() {
  bool some = false;
  shelf_.list([&some](const ModelShelf::Listed&) { some = true; });
  return some;
}

// Of any that is loaded.
bool Lobby::stands_still() {
  for (const ModelShelf::Lease& lease : shelf_.loaded()) {
    if (lease->attached && room_of(*lease).monitor.stands_still) return true;
  }
  return false;
}

std::string Lobby::names() {
  std::string names;
  shelf_.list(
      [&](const ModelShelf::Listed& listed) { names += (names.empty() ? "'" : ", '") + listed.file.name + "'"; });
  return names.empty() ? "the models of a folder that has none" : names;
}

std::string Lobby::default_name() {
  if (!config_.default_model.empty()) return config_.default_model;
  if (const auto latest = shelf_.latest()) return (*latest)->file.name;
  std::string first;
  shelf_.list([&](const ModelShelf::Listed& listed) {
    if (first.empty()) first = listed.file.name;
  });
  return first;
}

// Nullopt when nothing is called so.
std::optional<std::string> Lobby::resolve(std::string name) {
  constexpr std::string_view kLatest = ":latest";
  if (name.empty()) return default_name();
  if (shelf_.find(name)) return name;
  if (name.ends_with(kLatest)) {
    name.resize(name.size() - kLatest.size());
    if (shelf_.find(name)) return name;
  } else if (shelf_.find(name + std::string(kLatest))) {
    return name + std::string(kLatest);
  }
  const bool is_alias = std::any_of(config_.aliases.begin(), config_.aliases.end(),
                                    [&](const std::string& alias) { return matches_pattern(alias, name); });
  return is_alias ? std::optional(default_name()) : std::nullopt;
}

HttpResponse Lobby::logged(const HttpRequest& request, HttpResponse response) {
  if (access_->cors().allows(request)) Cors::open(request.header("Origin"), response);
  HttpRequest known = request;
  known.body.clear();
  if (known.method.empty()) known.method = "-";
  if (known.path.empty()) known.path = "-";
  RequestRecord record(known, "", monitor_);
  record.set_status(response.status);
  return response;
}

std::optional<HttpResponse> Lobby::refuse(HttpRequest& head) {
  use_own_name(head);
  if (Cors::is_preflight(head)) return std::nullopt;
  const Router::Match match = own_route(head);
  if (match.route && !match.route->needs_key) return std::nullopt;
  auto refused = access_->refuse_stranger(head);
  if (!refused) refused = access_->refuse_over_budget(head);  // before a model is loaded for it
  // Those of a model's room are counted there.
  if (!refused && match.route && !match.route->is_polled) refused = access_->refuse_too_many(head);
  if (!refused) return std::nullopt;
  return logged(head, shaped_for(head, *refused));
}

std::unique_ptr<Answer> Lobby::handle(HttpRequest request, Wake wake) {
  use_own_name(request);
  if (Cors::is_preflight(request)) {
    return immediate(logged(request, access_->cors().leave(request, "GET, POST, PUT, DELETE")));
  }
  if (Router::Match match = own_route(request); match.route) {
    auto record = std::make_unique<RequestRecord>(request, match.route->path, monitor_);
    if (match.route->is_polled) record->log_failures_only();
    const std::string origin(access_->cors().allows(request) ? request.header("Origin") : std::string_view());
    auto answer =
        match.route->handler({std::move(request), std::move(match.parameter), std::move(wake), std::move(record)});
    return origin.empty() ? std::move(answer) : opened_to(origin, std::move(answer));
  }
  auto found = model_for(request);
  if (const ApiError* error = std::get_if<ApiError>(&found)) {
    return immediate(logged(request, shaped_for(request, *error)));
  }
  if (request.method == "POST") last_asked_ = Monitor::Clock::now();
  return std::make_unique<WaitingAnswer>(*this, std::get<std::string>(found), std::move(request), wake);
}

std::unique_ptr<Answer> Lobby::ask_for_batch(HttpRequest request) {
  auto found = model_for(request);
  if (const ApiError* error = std::get_if<ApiError>(&found)) return immediate(logged(request, error_response(*error)));
  return std::make_unique<WaitingAnswer>(*this, std::get<std::string>(found), std::move(request), wake_, true);
}

bool Lobby::others_ask(const IsOwn& is_own) {
  bool any = has_others(monitor_, is_own) || others_wait_for_model(is_own);
  for (const ModelShelf::Lease& lease : shelf_.loaded()) {
    any = any || (lease->attached && has_others(room_of(*lease).monitor, is_own));
  }
  if (any) last_asked_ = Monitor::Clock::now();
  return any;
}

bool Lobby::others_wait_for_model(const IsOwn& is_own) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const WaitingAnswer* answer) { return answer->generates() && !is_own(answer->id()); });
}

std::string Lobby::model_of(const HttpRequest& request) {
  const auto found = model_for(request);
  const std::string* name = std::get_if<std::string>(&found);
  return name ? *name : std::string();
}

std::optional<engine::EngineStats> Lobby::stats_of(const std::string& model) {
  if (model.empty()) return engine::EngineStats();
  for (const ModelShelf::Lease& lease : shelf_.loaded()) {
    if (lease->file.name == model) return lease->service->engine().stats();
  }
  return std::nullopt;
}

// Who reads an answer will go on with its model in a moment.
bool Lobby::may_load() {
  return !last_asked_ || Monitor::Clock::now() - *last_asked_ >= config_.batches_load_after || shelf_.loaded().empty();
}

void Lobby::tell_ends(std::function<void()> ring) { tell_end_ = std::move(ring); }

void Lobby::set_wake(Wake wake) {
  if (!config_.batches) return;
  wake_ = std::move(wake);
  BatchRunner::Means means{config_.batches, config_.workers, monitor_, access_};
  BatchHouse& house = *this;
  batches_ = std::make_unique<BatchRunner>(std::move(means), house, wake_);
}

void Lobby::work() {
  if (batches_) batches_->work();
}

std::variant<std::string, ApiError> Lobby::model_for(const HttpRequest& request) {
  std::string asked;
  const char* field = "model";
  if (request.method == "POST") {
    asked = top_level_text(request.body, "model").value_or("");
    if (asked.empty()) asked = top_level_text(request.body, "name").value_or("");
    const bool is_run = config_.odo && odo::Odo::is_odo(asked);
    if (is_run) {
      odo::Ask ask;
      ask.model = asked;
      // Said here, before a model is loaded to say it.
      if (const Status known = config_.odo->check(ask); !known) {
        return ApiError{404, "model: " + known.error().message, "invalid_request_error", "model", "model_not_found"};
      }
    }
    if (is_run || (config_.odo && asked.empty() && request.by_side_port)) {
      asked = top_level_text(request.body, kBaseModel).value_or("");
      field = kBaseModel;
    }
  } else {
    for (const auto& [name, value] : query_fields(request.query)) {
      if (name == "model") asked = value;
    }
    // Those who watch load nothing.
    const auto latest = shelf_.latest();
    if (asked.empty() && !latest) {
      return ApiError{503, "no model is loaded: the first request for one loads it", "server_error", "",
                      "model_not_loaded"};
    }
    if (asked.empty()) asked = (*latest)->file.name;
  }
  const auto name = resolve(asked);
  if (!name || name->empty()) return unknown_model(asked, names(), field);
  return *name;
}

HttpResponse Lobby::error(const HttpRequest& head, int status, std::string message) {
  return logged(head, connection_error(head, status, std::move(message)));
}

void Lobby::tick() {
  if (batches_) batches_->tick();
  for (const ModelShelf::Lease& lease : shelf_.loaded()) {
    if (lease->attached) room_of(*lease).routes->tick();
  }
}

void Lobby::end_answers() {
  if (batches_) batches_->stop();
  for (const ModelShelf::Lease& lease : shelf_.loaded()) {
    if (lease->attached) room_of(*lease).routes->end_answers();
  }
}

}  // namespace chimere::server
