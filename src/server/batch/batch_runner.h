// batch_runner.h  Runs batches below people: requests of a batch begin only while nobody else is being answered, a few
// at a time, and one is given up and made again later when somebody has to wait for its place.
//
// It asks its house as a connection does, so that a request of a batch is a request like any other: limited, counted
// for its key, listed and logged. Of several models one runs requests of batches at a time: what asks for one that is
// loaded comes first, and another is loaded when nobody would miss what it displaces (BatchHouse::may_load()). On the I/O
// thread; the disk is left to workers.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/batch/batch_house.h"
#include "server/batch/batch_store.h"
#include "server/endpoints.h"
#include "server/http/access.h"

namespace chimere::server {

class BatchRunner {
 public:
  struct Means {
    std::shared_ptr<BatchStore> store;  // never null
    std::shared_ptr<Workers> workers;
    Monitor& monitor;  // counts what has a result
    std::shared_ptr<Access> access;
  };

  // The house outlives it. `wake` asks for a call of work(), and so do the answers of the house.
  BatchRunner(Means means, BatchHouse& house, Wake wake);
  ~BatchRunner();

  // When it was woken: an answer, the disk, the end of somebody's request, a new batch.
  void work() { look(false); }
  // About once a second, for what nobody rings: time that is over, memory that others need, an engine that woke up.
  void tick() { look(true); }
  // The server is stopping: nothing new begins. What has no result yet is made again after the next start.
  void stop() { is_stopping_ = true; }

 private:
  struct Waiting {
    BatchLine line;
    std::string model;  // that it is for
    int tries = 0;      // that ended because the server had no room
  };
  struct Running {
    Waiting request;
    std::string id;
    std::unique_ptr<Answer> answer;
    HttpResponse response;
  };
  struct Opened {
    std::optional<Batch> batch;
    std::vector<BatchLine> lines;
  };
  template <class T>
  using Job = std::unique_ptr<orchestrator::ServiceJob<T>>;

  void look(bool is_tick);
  bool has_batch();
  void look_for_batch();
  bool take_opened();
  bool may_run(const Batch& batch) const;
  bool is_over_budget(const Batch& batch) const;
  void read_answers();
  static void read(Running& running);
  void finish(Running& running);
  void add_result(BatchResult result);
  void save();
  void expire();
  void give_way_or_start(bool is_tick);
  void give_way(bool is_tick);
  HttpRequest request_of(const Waiting& waiting, std::string id) const;
  std::deque<Waiting>::iterator next_to_start();
  size_t at_once() const;
  void start(std::deque<Waiting>::iterator next);
  void end(const std::string& status, const std::string& problem = {});
  BatchHouse::IsOwn own() const;

  const Means means_;
  BatchHouse& house_;
  const Wake wake_;
  const std::shared_ptr<std::atomic<bool>> store_changed_ = std::make_shared<std::atomic<bool>>(false);
  bool is_due_ = true;  // what the store says has to be read again
  bool is_stopping_ = false;
  std::optional<Batch> batch_;
  bool has_expired_ = false;   // requests of it, without an answer
  bool is_resting_ = false;    // one found no room: nothing begins before the next tick
  bool is_postponed_ = false;  // its key has no tokens left: others come first until it has
  std::deque<Waiting> waiting_;
  std::vector<Running> running_;      // all of one model
  uint64_t left_by_step_ = 0;         // of its engine: what was given up is gone by then
  std::vector<BatchResult> results_;  // not yet on the disk
  Job<std::vector<Batch>> listing_;
  Job<Opened> opening_;
  Job<Batch> saving_;
  Job<Ok> ending_;
};

}  // namespace chimere::server
