#include "engine/loop.h"

#include <algorithm>
#include <exception>

#include "base/hash.h"

namespace chimere::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// A state depends on its weights and on where prompts are cut.
uint64_t state_key(const models::Model& model, const EngineConfig& config) {
  return hash_mix(model.cache_key() ^ hash_mix(static_cast<uint64_t>(config.prefill_tokens) << 16 | kMinSliceTokens));
}

// How long nothing runs before states go to the disk: in the pause between two turns nobody should wait for a copy.
constexpr std::chrono::seconds kQuiet{3};
constexpr std::chrono::hours kLongest{1};

}  // namespace

RequestInfo Active::info() const {
  RequestInfo i;
  i.id = id;
  if (sequence) i.state = answer.n_tokens() > 0 ? RequestState::decode : RequestState::prefill;
  i.prompt_tokens = usage.prompt_tokens;
  i.cached_tokens = usage.cached_tokens;
  i.completion_tokens = answer.n_tokens();
  i.is_thinking = answer.is_thinking();
  i.may_draft = draft.mode != speculative::Mode::off;
  i.submitted = submitted;
  i.started = started;
  return i;
}

Loop::Loop(models::Model& model, const EngineConfig& config)
    : model_(model),
      config_(config),
      state_limit_(config.state_bytes),
      sampler_(model.n_vocab(), config.suppressed_ids),
      embeds_(model, config.prefill_tokens),
      embed_places_(std::make_shared<QueuePlaces>(config.max_queued, "requests for embeddings")),
      places_(std::make_shared<QueuePlaces>(config.max_queued, "requests")),
      work_clock_(model),
      likely_tokens_(model.n_vocab(), kHeadBlock),
      draft_pass_(model),
      block_pass_(model),
      cache_(model.executable(), state_key(model, config), config.cache, [this] { post([](Loop&) {}); }) {
  for (speculative::Experience& e : experience_) e.acceptance.stand_on(&acceptance_);
  counts_.max_running = config.max_running;
  counts_.max_queued = config.max_queued;
  counts_.speculate = config.speculate;
  counts_.has_draft_pass = model.has_drafts();
  if (model.draft_blocks()) counts_.drafter.block_rows = model.draft_blocks()->n_rows;
  if (config.draft_model) {
    draft_model_.emplace(*config.draft_model);
    const std::string& called = config.draft_model->name();
    counts_.draft_model = called.empty() ? config.draft_model->architecture() : called;
  }
  publish_stats();
  thread_ = std::thread([this] { thread_main(); });
}

Loop::~Loop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Loop::post(Message message) {
  {
    std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
  }
  wake_.notify_one();
}

EngineStats Loop::stats() const {
  std::lock_guard lock(mutex_);
  EngineStats stats = published_;
  stats.place = place_;
  stats.experts = model_.executable().expert_traffic();
  stats.card_experts = model_.executable().card_traffic();
  return stats;
}

std::vector<RequestInfo> Loop::list() const {
  std::lock_guard lock(mutex_);
  std::vector<RequestInfo> all;
  for (const auto& entry : announced_) all.push_back(entry.second);
  return all;
}

void Loop::announce(const Active& a) {
  std::lock_guard lock(mutex_);
  announced_[a.id] = a.info();
}

void Loop::thread_main() {
  if (auto ready = model_.executable().prepare_draws(config_.suppressed_ids)) draws_on_device_ = *ready;
  if (draft_model_) draft_model_->prepare(config_.suppressed_ids);
  using speculative::Mode;
  const Mode mode = config_.speculate;
  const bool plans = mode != Mode::off && mode != Mode::always;
  if (plans && (mode != Mode::mtp || model_.has_drafts())) time_steps_once();
  while (take_messages()) {
    try {
      // What the disk's thread has read waits until there is memory to put it.
      if (counts_.asleep_bytes == 0 && cache_.poll()) may_write_ = true;
      place_ = "starts requests";
      end_late_requests();
      wake_for_work();
      if (counts_.asleep_bytes == 0) {
        if (running_.empty() || !asks_beyond_limit_) start_waiting();
        embed_step(step());
      }
    } catch (const std::exception& e) {
      // Only the standard library throws here, and only when memory ends: no request can go on.
      const Error error{Code::exhausted, std::string("engine: ") + e.what()};
      if (running_.empty() && !waiting_.empty()) fail(*waiting_.front(), error);
      for (auto& a : running_) fail(*a, error);
      embeds_.end_all(error);
    }
    remove_ended();
    release_forks();
    raise_limit();
    note_slots();
    // A request that waits for the disk or for its mask is heard of through a message.
    can_go_on_ =
        !waits_for_card_ &&
        (std::any_of(running_.begin(), running_.end(), [](const auto& a) { return !a->waits_for_mask; }) ||
         embeds_.has_work() ||
         std::any_of(waiting_.begin(), waiting_.end(), [](const auto& a) { return !a->is_loading && a->parent == 0; }));
    if (running_.empty() && waiting_.empty() && !embeds_.has_work()) work_while_idle();
    publish_stats();
  }
  for (auto& a : running_) finish(*a, FinishReason::cancelled);
  for (auto& a : waiting_) finish(*a, FinishReason::cancelled);
  embeds_.end_all({Code::cancelled, "the engine is stopping"});
  cache_.check_integrity();
  try {
    if (counts_.asleep_bytes == 0) cache_.flush();  // else nothing was added since
  } catch (const std::exception&) {
    // No memory for a copy: what is not on the disk yet is computed again some day.
  }
}

// False when the engine stops.
bool Loop::take_messages() {
  std::deque<Message> messages;
  bool stopping;
  {
    std::unique_lock lock(mutex_);
    if (!can_go_on_) place_ = "waits for requests";
    if (!can_go_on_) wake_.wait_until(lock, next_alarm(), [&] { return stopping_ || !messages_.empty(); });
    messages.swap(messages_);
    // In the same breath as the messages: what is posted before the stop is handled before the last round ends.
    stopping = stopping_;
  }
  place_ = "takes messages";
  // Also when stopping: whoever posted may wait for the answer.
  for (Message& m : messages) m(*this);
  if (!messages.empty()) publish_stats();
  return !stopping;
}

Clock::time_point Loop::next_alarm() const {
  Clock::time_point alarm = Clock::now() + kLongest;
  for (const auto& a : waiting_) alarm = std::min(alarm, a->request->deadline);
  alarm = std::min(alarm, sleep_time());
  if (waits_for_card_) alarm = std::min(alarm, wake_again_);
  const bool may_time = timed_in_a_hurry_ && counts_.asleep_bytes == 0;
  return may_write_ || may_time ? std::min(alarm, last_step_ + kQuiet) : alarm;
}

void Loop::work_while_idle() {
  sleep_if_wanted();
  if (Clock::now() < last_step_ + kQuiet) return;
  if (timed_in_a_hurry_ && counts_.asleep_bytes == 0) return time_steps_again();
  if (!may_write_) return;
  cache_.check_integrity();
  may_write_ = cache_.write_some();
}

void Loop::publish_stats() {
  if (draft_model_) counts_.draft_model_rows = draft_model_->n_rows();
  counts_.running = static_cast<int>(running_.size());
  counts_.queued = static_cast<int>(waiting_.size());
  // Looking at every page is not for every step.
  if (n_steps_ % 16 == 0 || running_.empty()) {
    counts_.state_bytes = held_bytes();
    counts_.memory = {{"weights", model_.executable().weight_bytes()},
                      {"activations", model_.executable().scratch_bytes()},
                      {"sequences", counts_.state_bytes - cache_.ram_bytes() - companion_bytes()},
                      {"prefix cache", cache_.ram_bytes()},
                      {"disk queue", cache_.queued_bytes()}};
    if (draft_model_) {
      Executable& executable = draft_model_->model().executable();
      counts_.memory.emplace_back("draft model", executable.weight_bytes() + executable.scratch_bytes());
      counts_.memory.emplace_back("draft sequences", companion_bytes());
    }
    counts_.draft_control.chances = chances_by_source();
    if (step_costs_) {
      counts_.draft_control.open_seconds = step_costs_->open();
      counts_.draft_control.back_seconds = step_costs_->back();
      counts_.draft_control.step_seconds.clear();
      for (const speculative::StepCosts::Point& point : step_costs_->points()) {
        counts_.draft_control.step_seconds.emplace_back(point.rows, point.seconds);
      }
    }
  }
  const auto waits = [](const auto& a) { return a->waits_for_memory; };
  counts_.shortage.waiting = static_cast<int>(std::count_if(running_.begin(), running_.end(), waits) +
                                              std::count_if(waiting_.begin(), waiting_.end(), waits));
  counts_.shortage.limit_bytes = state_limit_;
  counts_.shortage.wanted_bytes = config_.state_bytes;
  CacheStats& cache = counts_.cache;
  cache.lookups = cache_.n_lookups();
  cache.hits = cache_.n_hits();
  cache.misses.clear();
  for (int i = 1; i < kCacheMisses; ++i) cache.misses.push_back({name(static_cast<CacheMiss>(i)), cache_.misses()[i]});
  cache.ram_bytes = cache_.ram_bytes();
  cache.disk_bytes = cache_.disk_bytes();
  cache.others_disk_bytes = cache_.others_disk_bytes();
  cache.disk_limit_bytes = cache_.disk_limit_bytes();
  cache.entries = cache_.n_points();
  cache.budget_bytes = config_.cache.ram_bytes;
  std::lock_guard lock(mutex_);
  published_ = counts_;
  for (const auto& a : running_) announced_[a->id] = a->info();
}

// Allocates nothing: the end that is told next may be one for want of memory.
void Loop::publish_totals() {
  if (draft_model_) counts_.draft_model_rows = draft_model_->n_rows();
  std::lock_guard lock(mutex_);
  static_cast<EngineTotals&>(published_) = counts_;
}

Active* Loop::find(RequestId id) {
  for (auto& a : running_) {
    if (a->id == id) return a.get();
  }
  for (auto& a : waiting_) {
    if (a->id == id) return a.get();
  }
  return nullptr;
}

void Loop::end_late_requests() {
  const auto now = Clock::now();
  for (auto& a : waiting_) {
    if (a->request->deadline <= now) finish(*a, FinishReason::deadline);
  }
  for (auto& a : running_) {
    if (a->request->deadline <= now) finish(*a, FinishReason::deadline);
  }
  remove_ended();
}

void Loop::cancel(RequestId id) {
  if (Active* a = find(id)) {
    finish(*a, FinishReason::cancelled);
    remove_ended();
  }
  embeds_.cancel(id);
}

void Loop::embed(RequestId id, EmbedRequest request, std::shared_ptr<Channel<Result<Vectors>>> result) {
  embeds_.add(id, std::move(request), std::move(result));
}

void Loop::clear_cache(std::optional<uint64_t> owner, const std::function<void(CacheUse)>& done) {
  // Told here again, so that whoever asks for the statistics next sees what was cleared.
  cache_.clear(owner, [this, done](const CacheUse& cleared) {
    post([cleared, done](Loop& loop) {
      loop.counts_.cache.cleared_bytes += cleared.bytes;
      loop.publish_stats();
      done(cleared);
    });
  });
}

// Texts and those who generate have half of the time each: a batch of texts may be as long as many steps of answers.
void Loop::embed_step(int rows_before) {
  // What reading the weights costs, in rows.
  constexpr uint64_t kStepRows = 16;
  const bool both = embeds_.has_work() && rows_before > 0;
  if (!both) step_work_ = embed_work_ = 0;
  if (!embeds_.has_work()) return;
  if (both) step_work_ += kStepRows + static_cast<uint64_t>(rows_before);
  if (both && embed_work_ > step_work_) return;
  place_ = "embeds texts";
  embeds_.end_late(Clock::now());
  const auto ran = [&](int rows) {
    if (both) embed_work_ += kStepRows + static_cast<uint64_t>(rows);
    last_step_ = Clock::now();
    counts_.prompt_tokens += static_cast<uint64_t>(rows);
    count_step(rows);
    publish_totals();
  };
  const auto has_room = [this](uint64_t bytes) { return Clock::now() >= embeds_rest_until_ && make_room(bytes); };
  const Status s = embeds_.step(
      has_room, [this](uint64_t bytes) { return refuse_text(bytes); }, ran);
  if (!s) embeds_.end_all(s.error());
}

void Loop::update(RequestId id, const Update& update) {
  if (Active* a = find(id)) a->answer.update(update);
}

void Loop::fork(RequestId id, SamplingParams sampling, RequestId new_id, std::shared_ptr<Channel<Event>> events,
                QueuePlacePtr place) {
  const Active* from = find(id);
  if (!from) {
    ++counts_.requests_failed;
    Event event;
    event.kind = Event::Kind::failed;
    event.error = Error{Code::not_found, "request " + std::to_string(id) + " is not running"};
    publish_totals();
    events->put(std::move(event));
    return;
  }
  auto request = std::make_shared<Request>(*from->request);
  request->sampling = std::move(sampling);
  auto a = std::make_unique<Active>(new_id, std::move(request), std::move(events), from->answer);
  a->place = std::move(place);
  a->cuts = from->cuts;
  a->sampler = from->sampler;
  if (from->constraint) a->constraint = from->constraint->clone();
  if (from->memory) a->memory = from->memory->clone();
  a->draft.mode = from->draft.mode;
  if (from->answer.n_tokens() > 0) a->draft.following = from->draft.following;
  if (from->draft.own) a->draft.own = from->draft.own->clone();
  a->usage.prompt_tokens = from->usage.prompt_tokens;
  a->submitted = Clock::now();
  if (from->answer.n_tokens() == 0) {
    a->parent = id;
    announce(*a);
    return waiting_.push_back(std::move(a));
  }
  a->place = nullptr;
  a->usage = from->usage;
  a->usage.cached_tokens = a->usage.prompt_tokens;
  a->started = a->first_token = a->submitted;
  announce(*a);
  // Without room it waits like one that gave its state back.
  a->was_started = true;
  const Status s = from->sequence ? start_fork(*a, *from) : no_room_for(*a);
  if (!s && s.error().code != Code::exhausted) return fail(*a, s.error());
  if (!s) wait_for_memory(*a);
  (s ? running_.push_back(std::move(a)) : waiting_.push_back(std::move(a)));
}

void Loop::release_forks() {
  for (auto& a : waiting_) {
    if (a->parent == 0) continue;
    const Active* parent = find(a->parent);
    if (parent && parent->answer.n_tokens() == 0) continue;
    a->parent = 0;
    a->submitted = Clock::now();
    announce(*a);
  }
}

Status Loop::start_fork(Active& a, const Active& from) {
  const uint64_t bytes = model_.executable().layout().recurrent_floats() * sizeof(float);
  if (!make_room(2 * bytes)) return no_room_for(a);
  TRY_ASSIGN(const Snapshot snapshot, with_room(bytes, [&] { return from.sequence->snapshot(); }));
  TRY_ASSIGN(Sequence sequence, with_room(bytes, [&] { return Sequence::create(model_.executable()); }));
  TRY(sequence.restore(snapshot));
  a.sequence.emplace(std::move(sequence));
  begin_companion(a);
  return Ok{};
}

int Loop::step() {
  if (running_.empty()) return 0;
  place_ = "makes masks";
  prepare_masks();
  place_ = "makes a batch";
  const Batch batch = make_batch();
  counts_.batch_rows = batch.n_rows();
  if (batch.slices.empty()) return 0;
  last_step_ = Clock::now();
  may_write_ = true;
  draws_.assign(batch.logit_rows.size(), Draw{});
  bool wants_logits = false, is_decode = true;
  for (auto& a : running_) {
    is_decode &= a->rows_in_batch == 0 || a->rows_in_batch == a->draft.depth + 1;
    if (!a->events || a->logit_index < 0) continue;
    set_inputs(*a);
    for (int i = 0; i <= a->draft.depth; ++i) {
      draws_[a->logit_index + i] = device_draw(*a, std::span(batch.tokens).subspan(a->first_row + 1, i));
      wants_logits |= !draws_[a->logit_index + i].params;
    }
  }
  Outputs outputs;
  if (wants_logits) {
    logits_.resize(batch.logit_rows.size() * model_.n_vocab());
    outputs.logits = logits_.data();
  }
  if (draws_on_device_) {
    drawn_.assign(draws_.size(), Error{Code::internal, "nothing was drawn"});
    outputs.draws = draws_;
    outputs.drawn = drawn_;
  }
  const auto follows = [](const auto& a) { return a->rows_in_batch > 0 && a->draft.following.is_on; };
  if (std::any_of(running_.begin(), running_.end(), follows)) {
    row_hidden_.resize(batch.tokens.size() * static_cast<size_t>(model_.d_model()));
    outputs.row_hidden = row_hidden_.data();
  }
  place_ = "runs a batch";
  const double begun = work_clock_.seconds();
  const Status ran = model_.executable().run(batch, outputs);
  place_ = "draws tokens";
  const double ran_seconds = step_costs_ ? work_clock_.since(begun) : 0;
  if (step_costs_ && is_decode) step_costs_->observe(batch.n_rows(), ran_seconds);
  count_step(batch.n_rows());
  if (!ran) {
    for (auto& a : running_) fail(*a, ran.error());
    return batch.n_rows();
  }
  count_draft_times(is_decode, ran_seconds);
  for (auto& a : running_) {
    if (!a->events || a->rows_in_batch == 0) continue;
    shares_.charge(a->request->owner, static_cast<uint64_t>(a->rows_in_batch));
    if (Status s = a->sequence->commit(a->rows_in_batch); !s) {
      fail(*a, s.error());
      continue;
    }
    follow(*a);
    if (a->sequence->length() <= static_cast<int32_t>(a->sampler.n_prompt())) {
      counts_.prompt_tokens += a->rows_in_batch;
      tell_progress(*a);
    }
    if (a->draft.depth > 0) {
      draw_draft(*a);
      continue;
    }
    keep_state(*a);
    if (a->logit_index < 0) continue;
    Result<Sampled> sampled = take_drawn(*a);
    if (sampled) {
      accept(*a, std::move(*sampled));
    } else {
      fail(*a, sampled.error());
    }
  }
  catch_up_where_far();
  read_beside();
  return batch.n_rows();
}

void Loop::tell_progress(Active& a) {
  if (!a.request->tells_progress || a.sequence->length() <= a.n_told) return;
  a.n_told = a.sequence->length();
  Event event;
  event.kind = Event::Kind::progress;
  event.usage.prompt_tokens = a.usage.prompt_tokens;
  event.usage.cached_tokens = a.usage.cached_tokens;
  event.n_read = a.sequence->length();
  a.events->put(std::move(event));
}

void Loop::count_step(int rows) {
  int bucket = 0;
  while (bucket < kBatchSizes - 1 && (1 << bucket) < rows) ++bucket;
  ++counts_.steps;
  counts_.rows += static_cast<uint64_t>(rows);
  ++counts_.steps_by_rows[static_cast<size_t>(bucket)];
}

void Loop::set_inputs(Active& a) {
  const AnswerState::Row row = a.answer.before(a.sampler.tokens());
  a.inputs = {};
  a.inputs.forced = row.forced;
  a.inputs.bias = row.bias;
  if (!row.forced && a.constraint && !row.in_thought) a.inputs.mask = a.constraint->mask();
  if (!row.forced && a.memory) a.inputs.memory = a.memory->expect(a.sampler.tokens(), row.in_thought);
  a.needs_stats = row.needs_stats || !a.inputs.memory.empty();
}

namespace {

bool is_plain(const RowInputs& inputs) {
  return inputs.mask.empty() && inputs.bias.empty() && inputs.memory.empty() && !inputs.forced;
}

// A stop inside a thought or a form becomes another token, whose stats then have to be found in the same row.
bool needs_row_again(const Active& a) {
  const SamplingParams& params = a.request->sampling;
  return (a.answer.is_thinking() || a.constraint) && (params.stats || params.top_logprobs > 0);
}

}  // namespace

// Masks and what memory expects follow from the tokens before: of rows behind the first they are not known yet.
bool Loop::draws_ahead(const Active& a) const {
  return draws_on_device_ && !needs_row_again(a) && !a.memory && (!a.constraint || a.answer.is_thinking());
}

bool Loop::next_row_is_plain(const Active& a) const {
  AnswerState answer = a.answer;  // to ask it changes it
  const AnswerState::Row row = answer.before(a.sampler.tokens());
  const bool has_mask = a.constraint && !row.in_thought;
  return !row.forced && row.bias.empty() && !has_mask && !a.memory && row.needs_stats == a.needs_stats;
}

// Of the row behind `ahead` tokens of a draft. Empty where logits are wanted here.
Draw Loop::device_draw(const Active& a, std::span<const int32_t> ahead) const {
  const bool is_draft = a.draft.depth > 0;
  if (!draws_on_device_ || needs_row_again(a) || (is_draft && !(draws_ahead(a) && is_plain(a.inputs)))) return {};
  return {&a.params(), &a.sampler, a.inputs, a.sampler.tokens().size() + ahead.size(), ahead};
}

Result<Sampled> Loop::take_drawn(const Active& a) {
  const auto i = static_cast<size_t>(a.logit_index);
  return draws_[i].params ? std::move(drawn_[i]) : draw(a);
}

Result<Sampled> Loop::draw(const Active& a) {
  const size_t v = model_.n_vocab();
  return sampler_.sample(std::span(logits_).subspan(a.logit_index * v, v), a.params(), a.sampler, a.inputs,
                         a.sampler.tokens().size());
}

Result<Sampled> Loop::replaced(const Active& a, const Sampled& drawn) {
  if (!draws_[a.logit_index].params) return draw(a);
  Sampled sampled;
  sampled.id = *a.inputs.forced;
  sampled.entropy = drawn.entropy;  // of the row, whatever is taken from it
  sampled.max_prob = drawn.max_prob;
  return Result<Sampled>{std::move(sampled)};
}

void Loop::accept(Active& a, Sampled sampled) {
  if (a.answer.n_tokens() == 0) {
    a.first_token = Clock::now();
    a.usage.prefill_seconds = seconds(a.started, a.first_token);
  }
  const AnswerState::Verdict verdict = a.answer.judge(sampled.id, a.sampler.tokens(), a.constraint.get());
  if (verdict == AnswerState::Verdict::ends) return finish(a, FinishReason::stop);
  if (verdict == AnswerState::Verdict::replaced) {
    set_inputs(a);
    Result<Sampled> instead = replaced(a, sampled);
    if (!instead) return fail(a, instead.error());
    sampled = std::move(*instead);
  }
  if (!a.inputs.memory.empty()) a.memory->accept(sampled);
  a.sampler.accept(sampled.id);
  Event event;
  event.was_guessed = compare_guess(a, sampled.id);
  const std::optional<FinishReason> reason = a.answer.after(sampled, a.sampler.tokens(), a.constraint.get());
  ++counts_.generated_tokens;
  if (model_.has_drafts()) likely_tokens_.learn({&sampled.id, 1});
  event.token = std::move(sampled);
  a.events->put(std::move(event));
  if (reason) finish(a, *reason);
}

void Loop::finish(Active& a, FinishReason reason) {
  if (!a.events) return;
  if (a.answer.n_tokens() > 0) a.usage.decode_seconds = seconds(a.first_token, Clock::now());
  ++counts_.requests_finished;
  ++counts_.finished_by_reason[static_cast<size_t>(reason)];
  if (a.answer.n_tokens() > 0) experience_of(a).ended(a.answer.n_tokens());
  Event event;
  event.kind = Event::Kind::finished;
  event.reason = reason;
  end(a, std::move(event));
  keep_last_state(a);
}

void Loop::fail(Active& a, const Error& error) {
  if (!a.events) return;
  ++counts_.requests_failed;
  Event event;
  event.kind = Event::Kind::failed;
  event.error = error;
  end(a, std::move(event));
}

void Loop::end(Active& a, Event event) {
  event.usage = a.usage;
  event.usage.completion_tokens = a.answer.n_tokens();
  event.usage.reasoning_tokens = a.answer.n_thought();
  const std::shared_ptr<Channel<Event>> events = std::move(a.events);  // no second terminal event can follow
  // Who hears of the end finds it in the totals, not in the list, and its place free.
  publish_totals();
  {
    std::lock_guard lock(mutex_);
    announced_.erase(a.id);
  }
  a.place = nullptr;
  events->put(std::move(event));
}

void Loop::remove_ended() {
  auto ended = [](const std::unique_ptr<Active>& a) { return !a->events; };
  running_.erase(std::remove_if(running_.begin(), running_.end(), ended), running_.end());
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), ended), waiting_.end());
}

}  // namespace chimere::engine
