// batch_house.h  What a runner of batches sees of the server: one model (routes.cpp), or a folder of them
// (shelf/lobby.cpp). On the I/O thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/stats.h"
#include "server/http/http.h"

namespace chimere::server {

class BatchHouse {
 public:
  // Whether a request with this id is one of the batch's.
  using IsOwn = std::function<bool(const std::string& id)>;

  virtual ~BatchHouse() = default;
  // As a connection asks, without a key: the batch belongs to one that was let in.
  virtual std::unique_ptr<Answer> ask_for_batch(HttpRequest request) = 0;
  // Whether somebody else is being answered, or waits for it.
  virtual bool others_ask(const IsOwn& is_own) = 0;
  // Whether somebody else waits for a model to be loaded.
  virtual bool others_wait_for_model(const IsOwn& is_own) const = 0;
  // The name of the model that a request is for; empty: the only one, or none, which its answer will say.
  virtual std::string model_of(const HttpRequest& request) = 0;
  // Of the engine of that model; nullopt: it is not loaded. Of none: those of an engine at rest.
  virtual std::optional<engine::EngineStats> stats_of(const std::string& model) = 0;
  // Whether a batch may have one loaded now, for which others may have to go.
  virtual bool may_load() = 0;
  // `ring` is called when somebody's request has ended; an empty one takes it back.
  virtual void tell_ends(std::function<void()> ring) = 0;
};

}  // namespace chimere::server
