// embedding.h  Vectors for texts, scores for pairs: what is asked for, and the queue on the engine's thread, which puts
// one answer into the channel of each request.
//
// Texts of all requests share batches: owners take turns (fair_share.h), and of each its texts, short ones beside a
// slice of a long one. Where a text is cut follows from the text alone, so its vector has the same bits whatever else
// is in the batch.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/channel.h"
#include "base/result.h"
#include "cache/sequence.h"
#include "engine/fair_share.h"
#include "engine/queue_places.h"
#include "engine/request.h"
#include "models/model.h"

namespace chimere::engine {

// Which of a text's final hidden states its vector is made of; score: one number instead, of the first state by the
// model's head.
enum class Pooling { mean, first, last, score };

struct EmbedRequest {
  std::vector<std::vector<int32_t>> texts;  // each of at least one token, all inside the vocabulary
  std::vector<int32_t> second_at = {};      // of pairs: where the second text of each begins; else empty
  Pooling pooling = Pooling::mean;
  // With the mean: a vector for each window of two hops of tokens, which begin a hop after one another; a text of at most
  // two hops has one. 0: the whole text is one window.
  int hop_tokens = 0;
  uint64_t owner = 0;             // whose it is
  QueuePlacePtr place = nullptr;  // set by Engine::embed()
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// [texts][d_model], each of length 1, those of windows one behind another: [texts][windows * d_model]; [texts][1] of scores
using Vectors = std::vector<std::vector<float>>;

// What becomes of a text for which the device had no memory: fail only where no other text's end gives some back.
enum class Refused { ask_again, wait, fail };

// The engine thread's part.
class EmbedQueue {
 public:
  // The longest slice of a text is `slice_tokens`; an encoder's texts come whole.
  EmbedQueue(models::Model& model, int slice_tokens);

  void add(RequestId id, EmbedRequest request, std::shared_ptr<Channel<Result<Vectors>>> result);
  void cancel(RequestId id);
  void end_late(std::chrono::steady_clock::time_point now);
  void end_all(const Error& error);

  bool has_work() const { return !texts_.empty(); }
  // State of the texts under way, up to their ends.
  uint64_t held_bytes() const { return held_bytes_; }

  // Runs one batch, if there is something to do and room for it. `make_room` says whether so many bytes of state may be
  // taken, and `refused` what to do where the device does not give them all the same; `count` is told the rows that were
  // run, before anybody hears of a result.
  Status step(const std::function<bool(uint64_t)>& make_room, const std::function<Refused(uint64_t)>& refused,
              const std::function<void(int)>& count);

 private:
  struct Job {
    RequestId id = 0;
    EmbedRequest request;
    std::shared_ptr<Channel<Result<Vectors>>> result;
    Vectors vectors;
    size_t n_left = 0;
  };
  struct Text {
    std::shared_ptr<Job> job;
    size_t index = 0;                  // of job->request.texts
    std::optional<Sequence> sequence;  // once it is under way
    uint64_t bytes = 0;                // held for it
    std::vector<double> sum;           // of the states that count: [hops, d_model]
    int rows_in_batch = 0;

    const std::vector<int32_t>& tokens() const { return job->request.texts[index]; }
  };

  int next_slice(const Text& text) const;
  Status start(Text& text);
  Result<Slice> begin(Text& text, int n_tokens);
  void add_to_batch(Batch& batch, Text& text, int n_tokens, Slice slice);
  void give_back(Text& text);
  // Texts of one owner, as long as the batch has at most so many rows.
  void fill(Batch& batch, std::deque<Text>& texts, int max_rows, const std::function<bool(uint64_t)>& make_room,
            const std::function<Refused(uint64_t)>& refused, std::vector<Text>& chosen);
  void take_states(Text& text, const float*& states);
  void finish(Text& text);
  void fail(Job& job, const Error& error);
  void remove_ended();

  models::Model& model_;
  const int slice_tokens_;
  std::vector<std::shared_ptr<Job>> jobs_;
  std::map<OwnerId, std::deque<Text>> texts_;  // none is empty; whose turn it is of an owner's stands first
  FairShare shares_;
  std::vector<float> hidden_;
  uint64_t held_bytes_ = 0;
};

}  // namespace chimere::engine
