// lobby.h  The door of a server with several models: it finds out which one a request is for, waits until that is
// loaded, and lets the routes of that model answer.
//
//   request -> name in the body -> ModelShelf -> Room (the model, its routes, its figures) -> answer
//
// The orchestrator is one for all of them: `odo` is answered by a run with the model that the request names beside it, or
// the one that answers where none is named.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "server/batch/batch_house.h"
#include "server/batch/batch_runner.h"
#include "server/http/access.h"
#include "server/http/json.h"
#include "server/protocols/kept_responses.h"
#include "server/routes.h"
#include "server/shelf/model_shelf.h"

namespace chimere::server {

struct LobbyConfig {
  std::string version;
  std::chrono::milliseconds request_timeout{0};
  std::chrono::milliseconds longest_silence = kLongestSilence;
  std::string lora_folder;
  std::vector<std::string> aliases;  // of the model that answers where none is named
  std::string default_model;         // empty: the one that was used last, or the first
  bool page = true;
  bool slots = true;
  bool verbose = false;
  odo::Odo* odo = nullptr;                              // outlives the lobby; null: models alone answer
  std::shared_ptr<ConversationStore> conversations;     // null: none are kept here
  std::shared_ptr<store::Journal> journal;              // of answers, to learn from; null: none are kept
  std::shared_ptr<retrieval::Collections> collections;  // of documents; null: none are kept here
  std::shared_ptr<BatchStore> batches;                  // null: none are taken
  // A batch has a model loaded for it when nobody has asked for anything for so long.
  std::chrono::milliseconds batches_load_after{30'000};
  size_t max_body_bytes = 0;  // of a request
  WatchConfig watch;
  Tracer* tracer = nullptr;  // outlives the lobby; null: nothing is sent
  std::shared_ptr<Workers> workers = std::make_shared<Workers>();
};

class Lobby : public HttpHandler, private BatchHouse {
 public:
  // All of them outlive it.
  Lobby(ModelShelf& shelf, std::shared_ptr<Access> access, KeptResponses& kept, LobbyConfig config);

  std::optional<HttpResponse> refuse(HttpRequest& head) override;
  std::unique_ptr<Answer> handle(HttpRequest request, Wake wake) override;
  HttpResponse error(const HttpRequest& head, int status, std::string message) override;
  void tick() override;
  void set_wake(Wake wake) override;
  void work() override;
  void end_answers() override;

 private:
  class WaitingAnswer;

  // What answers for a loaded model. Made when the first request comes in, and gone before the model is.
  struct Room {
    Monitor monitor;
    std::unique_ptr<Services> services;
    std::unique_ptr<Routes> routes;
  };
  Room& room_of(ModelShelf::Loaded& model);
  void add_own_endpoints();
  void add_watching();
  void add_requests();
  // What is counted for all models, for those who ask one of them.
  void tell_counts(const std::string& path, Room& room) const;
  Json status(const HttpRequest& request);
  // What the lobby answers by itself, unless it is asked of one model.
  Router::Match own_route(const HttpRequest& request);
  std::optional<std::string> resolve(std::string name);
  // The model that a request is for, or why there is none.
  std::variant<std::string, ApiError> model_for(const HttpRequest& request);
  std::string default_name();
  HttpResponse logged(const HttpRequest& request, HttpResponse response);
  std::string names();
  int users_of(const std::string& name);
  bool has_files();
  bool stands_still();

  std::unique_ptr<Answer> ask_for_batch(HttpRequest request) override;
  bool others_ask(const IsOwn& is_own) override;
  bool others_wait_for_model(const IsOwn& is_own) const override;
  std::string model_of(const HttpRequest& request) override;
  std::optional<engine::EngineStats> stats_of(const std::string& model) override;
  bool may_load() override;
  void tell_ends(std::function<void()> ring) override;

  ModelShelf& shelf_;
  const std::shared_ptr<Access> access_;
  KeptResponses& kept_;
  const LobbyConfig config_;
  Monitor monitor_;
  std::set<WaitingAnswer*> waiting_;  // for their models
  Router own_;
  std::optional<Monitor::Clock::time_point> last_asked_;  // by people
  Wake wake_;
  std::function<void()> tell_end_;        // empty: nobody wants to know that a request has ended
  std::unique_ptr<BatchRunner> batches_;  // null: none are taken; its answers go before all else does
};

}  // namespace chimere::server
