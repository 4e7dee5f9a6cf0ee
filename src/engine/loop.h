// loop.h  The engine thread: takes messages, makes batches, runs them, draws tokens.
//
// Everything here but what says "any thread" runs on the engine thread, so nothing needs a lock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/job_threads.h"
#include "cache/prefix_cache.h"
#include "cache/sequence.h"
#include "engine/answer_state.h"
#include "engine/block_pass.h"
#include "engine/draft.h"
#include "engine/draft_model.h"
#include "engine/draft_pass.h"
#include "engine/embedding.h"
#include "engine/engine.h"
#include "engine/fair_share.h"
#include "engine/prompt_cuts.h"
#include "engine/queue_places.h"
#include "engine/work_clock.h"
#include "sampling/sampler.h"
#include "speculative/likely_tokens.h"
#include "speculative/plan.h"

namespace chimere::engine {

// A request that was admitted to the queue. It has a sequence once it runs.
struct Active {
  Active(RequestId number, std::shared_ptr<const Request> asked, std::shared_ptr<Channel<Event>> out, AnswerState state)
      : id(number), request(std::move(asked)), events(std::move(out)), answer(std::move(state)) {
    sampling_with_stats = request->sampling;
    sampling_with_stats.stats = true;
  }

  const RequestId id;
  const std::shared_ptr<const Request> request;
  std::shared_ptr<Channel<Event>> events;  // null once it has ended
  QueuePlacePtr place;                     // null once it runs
  std::optional<Sequence> sequence;
  SamplerState sampler;  // prompt and what was drawn
  AnswerState answer;
  std::shared_ptr<TokenConstraint> constraint;  // null: any token may follow
  bool waits_for_mask = false;                  // which a thread of masks_ makes
  std::unique_ptr<MemorySource> memory;         // null: none
  SamplingParams sampling_with_stats;
  Usage usage;                // but the tokens of the answer, which it counts itself
  int32_t rows_in_batch = 0;  // of the step that runs now
  int32_t first_row = 0;      // of these
  int32_t logit_index = -1;   // row of its logits in that step, or -1 while it prefills
  RowInputs inputs;           // of the token that is drawn in that step
  Draft draft;
  bool needs_stats = false;  // for that token
  PromptCuts cuts;           // of the prompt
  int32_t kept_at = 0;       // the last position whose state is kept
  uint64_t last_slice = 0;   // the step in which its prompt last got on
  uint64_t last_token = 0;   // the step in which its answer last did
  bool is_express = false;   // a short prompt that runs beyond max_running
  bool is_stalled = false;   // there was no memory for it in this step
  bool was_refused = false;  // and the device itself said so
  bool waits_for_memory = false;
  bool was_started = false;  // once it had a sequence, which it may have given back
  int32_t n_told = -1;       // of its prompt, as tell_progress() said
  bool is_loading = false;   // waits for the disk
  int n_loads = 0;           // times it did
  RequestId parent = 0;      // of a fork that waits until this one has read their prompt
  RequestId leader = 0;      // whose prompt, that begins as its own, it waits for
  int n_leaders = 0;         // how many it waited for
  std::chrono::steady_clock::time_point submitted, started, first_token;

  RequestInfo info() const;
  const SamplingParams& params() const { return needs_stats ? sampling_with_stats : request->sampling; }
  // Tokens that are decided but not yet in the sequence: the rest of the prompt, or the last token drawn.
  std::span<const int32_t> pending() const { return sampler.tokens().subspan(sequence ? sequence->length() : 0); }
};

// While answering, state is kept every so many tokens, in case the answer comes back as prompt with another end; and at
// the end, when it is so far from what is kept already.
inline constexpr int32_t kAnswerSnapshotTokens = 256;
inline constexpr int32_t kMinKeptTokens = 8;

// Steps towards masks that one answer may take in a step of all: well below a millisecond. Almost every mask needs
// fewer, or is known.
inline constexpr int64_t kMaskSteps = 50'000;

using KindOf = speculative::Kind (*)(int);

class Loop {
 public:
  Loop(models::Model& model, const EngineConfig& config);
  ~Loop();

  using Message = std::function<void(Loop&)>;
  // Any thread. Runs between two steps, in order.
  void post(Message message);
  // Any thread.
  EngineStats stats() const;
  std::vector<RequestInfo> list() const;
  // Any thread. The request shows up in list() from here on until it ends.
  void announce(const Active& a);
  // Any thread. Places for requests that will be admitted, and for those for embeddings.
  QueuePlaces& places() { return *places_; }
  QueuePlaces& embed_places() { return *embed_places_; }
  // Any thread. Whether the state of so many tokens can be held at all. what: "prompt", for the message.
  Status check_state_bytes(int32_t n_tokens, const char* what) const;

  // On the engine thread, from messages.
  void admit(std::unique_ptr<Active> request) { waiting_.push_back(std::move(request)); }  // it has its place
  void cancel(RequestId id);
  void update(RequestId id, const Update& update);
  void fork(RequestId id, SamplingParams sampling, RequestId new_id, std::shared_ptr<Channel<Event>> events,
            QueuePlacePtr place);
  void embed(RequestId id, EmbedRequest request, std::shared_ptr<Channel<Result<Vectors>>> result);
  void clear_cache(std::optional<uint64_t> owner, const std::function<void(CacheUse)>& done);
  void sleep(std::function<void(Result<uint64_t>)> done) { wait_for_sleep_.push_back(std::move(done)); }
  Status wake();
  models::Model& model() { return model_; }
  // Any thread.
  std::string cache_folder() const { return cache_.disk_folder(); }

 private:
  void thread_main();
  bool take_messages();
  std::chrono::steady_clock::time_point next_alarm() const;
  void work_while_idle();
  // sleep.cpp: the card is given to others while nobody needs the model.
  std::chrono::steady_clock::time_point sleep_time() const;
  Result<uint64_t> give_card_away();
  Status take_card_again();
  void sleep_if_wanted();
  void wake_for_work();

  // admission.cpp
  void start_waiting();
  // Who begins next, of those that are not among `passed`; null when nobody may.
  Active* next_to_start(const std::set<RequestId>& passed);
  bool waits_for_another(Active& a, int32_t n_cached);
  bool has_room_for(const Active& a, int32_t n_cached);
  Status start(Active& a, PrefixCache::Found& found);
  uint64_t bytes_for(int32_t n_tokens) const;
  uint64_t held_bytes() const;
  // Whether this much more state may be allocated now, after the cache gave way.
  bool make_room(uint64_t bytes);
  void keep_state(Active& a);
  void keep_last_state(Active& a);

  // shortage.cpp: what happens where memory for states ends.
  // The result of `allocate`, which takes that much. Where the device refuses it, drafts and the cache give way.
  template <class Allocate>
  auto with_room(uint64_t bytes, Allocate&& allocate) -> decltype(allocate());
  bool give_way(uint64_t bytes);
  void lower_limit();
  void raise_limit();
  void note_slots();
  void wait_for_memory(Active& a);
  Error no_room_for(const Active& a) const;
  void give_back(Active& a);
  void end_standstill(bool has_asked);
  Refused refuse_text(uint64_t bytes);

  // batching.cpp: chooses each request's share of the next step and fills the batch.
  // Masks that take long are made on a thread of their own, while the answers that need them sit out.
  void prepare_masks();
  Batch make_batch();
  std::vector<Active*> choose_decoders();
  void add_prompts(Batch& batch);
  bool add_slice(Batch& batch, Active& a, int n_tokens);

  // drafting.cpp: guesses at the next tokens of answers, and what becomes of them.
  void time_steps_once();
  void time_steps_again();
  int draft_room(const Active& a) const;
  void guess(Active& a, int most);
  // A chain of d.depth guesses becomes the answer's.
  template <class GuessAt>
  void take_chain(Active& a, GuessAt&& guess_at, KindOf kind);
  void choose_depths(const std::vector<Active*>& decoders, int n_rows, int max_rows);
  void plan_drafts(const std::vector<Active*>& decoders);
  bool add_draft(Batch& batch, Active& a);
  void draw_draft(Active& a);
  bool compare_guess(Active& a, int32_t id);
  speculative::Experience& experience_of(const Active& a);
  void learn(Active& a, speculative::Kind kind, bool is_right);
  // Of the step that ran: what drafts cost of it, and what each guess that turns out right saves.
  void count_draft_times(bool is_decode, double seconds);
  std::vector<DraftControl::Chances> chances_by_source() const;
  bool has_free(uint64_t bytes) const;
  void drop_drafts();
  void keep_draft_space(Active& a);
  uint64_t spare_bytes() const;

  // makers.cpp: whoever makes guesses for an answer at a cost: their kinds by their place in a chain, and what they
  // cost. Null where nobody does.
  struct Maker {
    KindOf kind = nullptr;
    const speculative::StepCosts* costs = nullptr;
    int most = kDecodeTokens - 1;  // guesses
  };
  Maker maker_for(const Active& a) const;
  bool prefers_pass(const Active& a) const;
  // Whether such guesses, as good as they were lately, save more than it costs to read so many tokens first.
  bool guesses_pay_for(const Active& a, double n_tokens, const speculative::StepCosts* costs, KindOf kind,
                       uint64_t& n_left_out);

  // companions.cpp: a draft model reads texts beside the model, and guesses.
  void begin_companion(Active& a);
  bool companion_has_room(const Active& a) const;
  bool ready_companion(Active& a);
  bool companion_guesses(const Active& a) const;
  void read_beside();
  void guess_beside(const std::vector<Active*>& decoders);
  void take_companions_chain(Active& a);
  uint64_t companion_bytes() const;

  // following.cpp: the model's draft pass follows its trunk, and guesses.
  void begin_following(Active& a);
  void follow(Active& a);
  void follow_back(Active& a, int n_tokens);
  void catch_up(const std::vector<Active*>& behind);
  void catch_up_where_far();
  void catch_up_alone(Active& a);
  void learn_from_pass(Active& a, size_t part, int n_guesses);
  Status run_chains(std::span<const DraftPass::Part> parts);
  void guess_with_passes(const std::vector<Active*>& decoders);

  // dflash.cpp: a drafter guesses.
  bool is_worth_a_probe(const Active& a) const;
  void guess_with_blocks(const std::vector<Active*>& decoders);

  int step();  // gives the rows that were run
  // How much of its prompt is read, to those who want to know.
  void tell_progress(Active& a);
  void embed_step(int rows_before);
  // What the token to be drawn depends on beside its logits.
  void set_inputs(Active& a);
  // Whether the device can draw from the rows of its drafts, too.
  bool draws_ahead(const Active& a) const;
  // Whether the next row is given nothing but logits, as device_draw() takes it for granted of rows behind the first.
  bool next_row_is_plain(const Active& a) const;
  Draw device_draw(const Active& a, std::span<const int32_t> ahead) const;
  Result<Sampled> draw(const Active& a);
  // What the device drew from the row, or else what is drawn from it here.
  Result<Sampled> take_drawn(const Active& a);
  // The forced token of a.inputs in place of one that was drawn from the same row.
  Result<Sampled> replaced(const Active& a, const Sampled& drawn);
  void accept(Active& a, Sampled sampled);
  Status start_fork(Active& a, const Active& from);
  // Forks begin when the one they come from has read the prompt, whose state they find in the cache, or has ended.
  void release_forks();
  void finish(Active& a, FinishReason reason);
  void fail(Active& a, const Error& error);
  // The terminal event.
  void end(Active& a, Event event);
  void end_late_requests();
  void remove_ended();
  Active* find(RequestId id);
  void publish_stats();
  // Before the end of anything is told, so that it is in the totals for whoever hears of it.
  void publish_totals();
  void count_step(int rows);

  models::Model& model_;
  const EngineConfig config_;
  std::optional<uint64_t> n_slots_;  // for experts on a card, when it was looked at last
  uint64_t state_limit_;             // config_.state_bytes, or what the device lately had
  bool asks_beyond_limit_ = false;   // in the next step, in which nobody begins
  std::chrono::steady_clock::time_point ask_again_{}, next_line_{}, embeds_rest_until_{};  // shortage.cpp
  Sampler sampler_;
  std::deque<std::unique_ptr<Active>> waiting_;
  // Oldest first. There may be more than max_running: then they take turns (docs/caches.md, Scheduling).
  std::vector<std::unique_ptr<Active>> running_;
  FairShare shares_;  // of those who generate
  EmbedQueue embeds_;
  uint64_t step_work_ = 0, embed_work_ = 0;  // while both want to go on
  const std::shared_ptr<QueuePlaces> embed_places_, places_;
  bool draws_on_device_ = false;
  std::vector<float> logits_;  // of the step that runs now, of the rows that are drawn from here
  std::vector<Draw> draws_;
  std::vector<Result<Sampled>> drawn_;
  speculative::Acceptance acceptance_{512};  // of all requests
  std::array<speculative::Experience, 4> experience_;
  const WorkClock work_clock_;
  speculative::LikelyTokens likely_tokens_;
  std::optional<speculative::StepCosts> step_costs_, pass_costs_;
  double block_guess_s_ = 0;  // of a guess behind the first of a drafter's block
  DraftPass draft_pass_;
  BlockPass block_pass_;
  std::optional<DraftModel> draft_model_;
  uint64_t tokens_at_block_ = 0;   // generated when the drafter last guessed
  std::vector<float> row_hidden_;  // of the step that runs now, where the draft pass follows it
  bool timed_steps_ = false, timed_in_a_hurry_ = false;
  // Whether guesses could pay in the step under way, beside so many others (speculative::could_pay).
  bool may_pay_ = true;
  double draft_work_ = 0;  // seconds that guesses took beside rows, since the last step that gave tokens
  // What one right guess saves in the step that ran, of all answers' time and of its own answer's: 0 where nobody knows.
  double saved_of_all_ = 0, saved_of_one_ = 0;
  std::vector<DraftSpace> spare_draft_spaces_;  // of answers that were drafted for and ended; at most max_running
  EngineStats counts_;
  uint64_t n_steps_ = 0;
  std::vector<std::function<void(Result<uint64_t>)>> wait_for_sleep_;
  bool sleep_problem_ = false;  // the last try failed: idleness alone is no reason to try again
  // Others hold the card: those who need the model wait, and it is tried again then.
  bool waits_for_card_ = false;
  std::chrono::steady_clock::time_point wake_again_ = {};
  bool can_go_on_ = false;  // without a message
  bool may_write_ = true;   // there may be something for the disk
  std::chrono::steady_clock::time_point last_step_ = std::chrono::steady_clock::now();
  std::atomic<const char*> place_{"starts"};

  mutable std::mutex mutex_;  // guards the four below
  std::condition_variable wake_;
  std::deque<Message> messages_;
  EngineStats published_;
  std::map<RequestId, RequestInfo> announced_;
  bool stopping_ = false;

  PrefixCache cache_;    // its disk's thread posts messages
  JobThreads masks_{1};  // so does this one
  std::thread thread_;
};

template <class Allocate>
auto Loop::with_room(uint64_t bytes, Allocate&& allocate) -> decltype(allocate()) {
  auto allocated = allocate();
  const auto is_refused = [&] { return !allocated && allocated.error().code == Code::exhausted; };
  if (is_refused()) lower_limit();
  while (is_refused() && give_way(bytes)) allocated = allocate();
  return allocated;
}

template <class GuessAt>
void Loop::take_chain(Active& a, GuessAt&& guess_at, KindOf kind) {
  Draft& d = a.draft;
  const std::vector<int32_t>& stops = a.request->stop_ids;
  for (int i = 0; i < d.depth; ++i) {
    const int32_t id = guess_at(i);
    const bool is_stop = std::find(stops.begin(), stops.end(), id) != stops.end();  // the answer would end with it
    if (is_stop || id >= model_.n_vocab()) break;
    d.guesses.push_back({id, kind(i)});
  }
  d.depth = static_cast<int>(d.guesses.size());
}

}  // namespace chimere::engine
