// run_stream.h  A run as its two ends see it: the thread that makes the answer writes, whoever asked for it reads.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/channel.h"
#include "orchestrator/answer_stream.h"

namespace chimere::odo {

using orchestrator::ChatChunk;
using orchestrator::RunReport;
using orchestrator::StepReport;

// What both ends hold.
struct RunLink {
  explicit RunLink(std::function<void()> notify) : chunks(std::move(notify)) {}

  Channel<ChatChunk> chunks;
  std::atomic<engine::RequestId> engine_id{0};
  std::atomic<int32_t> prompt_tokens{0}, completion_tokens{0};
  std::atomic<bool> thinks_no_longer{false};
};

// The reader's end.
class RunStream : public orchestrator::AnswerStream {
 public:
  explicit RunStream(std::shared_ptr<RunLink> link) : link_(std::move(link)) {}
  ~RunStream() override { link_->chunks.close(); }

  std::optional<ChatChunk> poll() override;
  void cancel() override { link_->chunks.cancel(); }
  void stop_thinking() override { link_->thinks_no_longer = true; }
  engine::RequestId engine_id() const override { return link_->engine_id; }
  engine::Usage seen() const override;
  std::optional<std::chrono::steady_clock::time_point> first_token_time() const override { return first_token_time_; }

 private:
  std::shared_ptr<RunLink> link_;
  std::optional<std::chrono::steady_clock::time_point> first_token_time_;
  bool done_ = false;
};

// The writer's end: what is told of a run, in the order that readers rely on. Steps may be told of from several threads.
class RunTeller {
 public:
  using Clock = std::chrono::steady_clock;

  RunTeller(std::shared_ptr<RunLink> link, RunReport head) : link_(std::move(link)), report_(std::move(head)) {}

  bool is_cancelled() const { return link_->chunks.is_cancelled(); }
  // Whether the thought shall end, asked for since this was last called.
  bool wants_answer_now() { return link_->thinks_no_longer.exchange(false); }
  void works_on(engine::RequestId id) { link_->engine_id = id; }

  void set_route(std::string route);
  // A step begins; gives its index. Before the answer has begun, its reader waits for a first sign: `is_sign` is one.
  int begin(std::string stage, std::string about, bool is_sign = true);
  void end(int step, StepReport::State state, std::string about, std::string detail = {});
  // How far it is, while it runs.
  void tell_of(int step, std::string about, std::string detail);
  // It waits for a person.
  void ask(int step, std::string about, std::string detail);
  void add_tokens(int step, const engine::Usage& usage);
  // Text of the answer.
  void tell(ChatChunk delta);

  // Exactly one of these is the last call.
  void finish(ChatChunk finished);
  void fail(Error error, bool is_too_long = false, int32_t prompt_tokens = 0);

  RunReport report() const;
  engine::Usage usage() const;

 private:
  void start_locked();
  void put_step_locked(int step);

  std::shared_ptr<RunLink> link_;
  mutable std::mutex mutex_;  // guards all below
  RunReport report_;
  engine::Usage usage_;
  bool is_started_ = false;
};

}  // namespace chimere::odo
