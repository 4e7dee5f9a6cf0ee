// admission.cpp  Which waiting request starts next, from where, and whether there is memory for it.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "engine/loop.h"

namespace chimere::engine {
namespace {

using Clock = std::chrono::steady_clock;

// Room kept for an answer when a request is started; more is taken page by page while there is some.
constexpr int32_t kReservedTokens = 512;
// A request that could use what another is computing waits for it, when it saves at least as many tokens.
constexpr int32_t kWorthWaiting = 16;
// As many others at most: nobody waits for ever.
constexpr int kMaxLeaders = 4;
constexpr int kMaxLoads = 2;
// A prompt of more slices is long: behind several of them a short one would wait for minutes.
constexpr int32_t kLongSlices = 4;

int32_t common_length(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t n = std::min(a.size(), b.size());
  return static_cast<int32_t>(std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin()).first -
                              a.begin());
}

int32_t reserve_for_answer(const Active& a) {
  const int32_t most = a.answer.max_tokens();
  return most < 0 ? kReservedTokens : std::clamp(most - a.answer.n_tokens(), 0, kReservedTokens);
}

// The last position that `leader` will come to and keep, and that the prompt of `a` can go on from.
int32_t position_to_share(const Active& a, const Active& leader) {
  const auto prompt = leader.sampler.tokens().first(leader.sampler.n_prompt());
  const int32_t common = common_length(a.sampler.tokens(), prompt);
  const int32_t longest = std::min(common, static_cast<int32_t>(a.sampler.n_prompt()) - 1);
  const std::vector<int32_t>& keep = leader.cuts.keep;
  for (auto at = keep.rbegin(); at != keep.rend() && *at > leader.sequence->length(); ++at) {
    if (*at <= longest && std::binary_search(a.cuts.cuts.begin(), a.cuts.cuts.end(), *at)) return *at;
  }
  return 0;
}

}  // namespace

// Nothing that ends makes room for what is beyond the limit alone.
Status Loop::check_state_bytes(int32_t n_tokens, const char* what) const {
  const uint64_t bytes = bytes_for(n_tokens + 1);
  if (bytes <= config_.state_bytes) return Ok{};
  return Error{Code::invalid_argument, "a " + std::string(what) + " of " + std::to_string(n_tokens) + " tokens needs " +
                                           std::to_string(bytes) + " bytes of state, the limit is " +
                                           std::to_string(config_.state_bytes)};
}

uint64_t Loop::bytes_for(int32_t n_tokens) const {
  const StateLayout& layout = model_.executable().layout();
  const uint64_t pages = (static_cast<uint64_t>(n_tokens) + kPageTokens - 1) / kPageTokens;
  return pages * layout.page_bytes() + layout.recurrent_floats() * sizeof(float);
}

// Exact: what is shared counts once.
uint64_t Loop::held_bytes() const {
  uint64_t bytes = cache_.ram_bytes() + embeds_.held_bytes() + spare_bytes() + companion_bytes();
  std::unordered_set<const StateBlock*> seen;
  for (const auto& a : running_) {
    if (!a->sequence) continue;
    a->sequence->for_each_block([&](const StateBlock& block) {
      if (!cache_.holds(block) && seen.insert(&block).second) bytes += block.size_bytes();
    });
  }
  return bytes;
}

bool Loop::make_room(uint64_t bytes) {
  if (bytes == 0) return true;  // most tokens: their page is there
  uint64_t at_most = cache_.ram_bytes() + embeds_.held_bytes() + spare_bytes() + companion_bytes() + bytes;
  for (const auto& a : running_) at_most += a->sequence ? a->sequence->size_bytes() : 0;
  if (at_most <= state_limit_) return true;
  drop_drafts();
  const uint64_t wanted = held_bytes() + bytes;
  if (wanted <= state_limit_) return true;
  cache_.release(wanted - state_limit_);
  return held_bytes() + bytes <= state_limit_;
}

// Room for its text and a short answer, beside what the running ones may still take. The cache gives way.
bool Loop::has_room_for(const Active& a, int32_t n_cached) {
  const uint64_t shared = static_cast<uint64_t>(n_cached / kPageTokens) * model_.executable().layout().page_bytes();
  uint64_t wanted = bytes_for(static_cast<int32_t>(a.sampler.tokens().size()) + reserve_for_answer(a)) - shared;
  for (const auto& other : running_) {
    const uint64_t in_the_end =
        bytes_for(static_cast<int32_t>(other->sampler.tokens().size()) + reserve_for_answer(*other));
    const uint64_t now = other->sequence ? other->sequence->size_bytes() - other->sequence->draft_bytes() : 0;
    wanted += in_the_end - std::min(in_the_end, now);
  }
  if (held_bytes() + wanted <= state_limit_) return true;
  drop_drafts();
  const uint64_t held = held_bytes();
  if (held + wanted <= state_limit_) return true;
  const uint64_t excess = held + wanted - state_limit_;
  if (!running_.empty() && cache_.releasable_bytes() < excess) return false;
  cache_.release(excess);
  return true;
}

bool Loop::waits_for_another(Active& a, int32_t n_cached) {
  for (const auto& leader : running_) {
    const bool prefills = leader->events && leader->sequence && leader->answer.n_tokens() == 0;
    if (!prefills || leader->request->cache_scope != a.request->cache_scope) continue;
    if (position_to_share(a, *leader) < n_cached + kWorthWaiting) continue;
    if (a.leader != leader->id && ++a.n_leaders > kMaxLeaders) return false;
    a.leader = leader->id;
    return true;
  }
  return false;
}

// The owner of whom least runs comes first, and of it the oldest request. Beyond max_running begin only
//   those whose owner has less than its share: the others' answers take turns with theirs from then on;
//   a few short prompts, where long ones would hold them up.
Active* Loop::next_to_start(const std::set<RequestId>& passed) {
  std::map<OwnerId, int> n_running;
  int n_express = 0;
  bool is_long = false;  // somebody's prompt is, that waits or is under way
  const auto look = [&](const Active& a) {
    const int32_t left = a.usage.prompt_tokens - (a.sequence ? a.sequence->length() : 0);
    is_long |= left > kLongSlices * config_.prefill_tokens;
  };
  for (const auto& a : running_) {
    ++n_running[a->request->owner];
    n_express += a->is_express;
    look(*a);
  }
  for (const auto& a : waiting_) look(*a);
  const int share = std::max(1, config_.max_running / std::max(1, shares_.n_active()));
  const bool is_full = static_cast<int>(running_.size()) - n_express >= config_.max_running;
  const bool has_express = is_long && n_express < std::max(1, config_.max_running / 2);
  Active* best = nullptr;
  std::pair<int, uint64_t> least;
  for (const auto& a : waiting_) {
    if (!a->events || a->parent != 0 || passed.count(a->id)) continue;
    const OwnerId owner = a->request->owner;
    const bool is_express = is_full && n_running[owner] >= share;
    if (is_express && !(has_express && a->usage.prompt_tokens <= config_.prefill_tokens)) continue;
    const std::pair<int, uint64_t> rank{n_running[owner], shares_.time(owner)};
    if (best && rank >= least) continue;
    best = a.get();
    least = rank;
    a->is_express = is_express;
  }
  return best;
}

// Moves requests from the queue to the running ones. Those that wait for the disk or for what another one computes let
// others pass; one that waits for memory does not, or it would wait for ever.
void Loop::start_waiting() {
  std::set<OwnerId> owners;
  for (const auto& a : running_) owners.insert(a->request->owner);
  for (const auto& a : waiting_) owners.insert(a->request->owner);
  shares_.set_active(owners);
  std::set<RequestId> passed;
  while (Active* next = next_to_start(passed)) {
    Active& a = *next;
    const PrefixCache::Text text{a.request->cache_scope, a.sampler.tokens(), a.request->owner};
    PrefixCache::Found found = cache_.find(text, a.cuts.cuts, a.n_loads < kMaxLoads);
    if (found.has_begun_loading) ++a.n_loads;
    a.is_loading = found.is_loading;
    if (a.is_loading || waits_for_another(a, found.length)) {
      passed.insert(a.id);
      continue;
    }
    if (!has_room_for(a, found.length)) return wait_for_memory(a);
    // It runs from here on, so that whatever happens next it is among those that get a terminal event.
    const auto at = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& w) { return w.get() == next; });
    running_.push_back(std::move(*at));
    waiting_.erase(at);
    a.place = nullptr;
    const Status started = start(a, found);
    if (started) continue;
    if (started.error().code != Code::exhausted) {
      fail(a, started.error());
    } else if (running_.size() == 1 && embeds_.held_bytes() == 0) {
      fail(a, no_room_for(a));
    } else {
      waiting_.push_front(std::move(running_.back()));
      running_.pop_back();
      return wait_for_memory(a);
    }
  }
}

Status Loop::start(Active& a, PrefixCache::Found& found) {
  const uint64_t bytes = bytes_for(0);
  const auto create = [&] { return Sequence::create(model_.executable()); };
  Result<Sequence> sequence = with_room(bytes, create);
  if (!sequence && found.length > 0 && running_.size() == 1) {
    found.length = 0;  // alone, with what it would go on from in its way
    found.miss = CacheMiss::evicted;
    found.snapshot = {};
    sequence = with_room(bytes, create);
  }
  if (!sequence) return std::move(sequence.error());
  if (found.length > 0) TRY(sequence->restore(found.snapshot));
  a.sequence.emplace(std::move(*sequence));
  a.waits_for_memory = false;
  begin_companion(a);
  begin_following(a);
  a.kept_at = found.length;
  if (std::exchange(a.was_started, true)) return Ok{};
  a.started = Clock::now();
  a.usage.queue_seconds = std::chrono::duration<double>(a.started - a.submitted).count();
  a.usage.cached_tokens = found.length;
  // That somebody else has the same prompt is nobody's business.
  a.usage.cache_miss = found.miss == CacheMiss::scope ? CacheMiss::empty : found.miss;
  a.usage.cache_differs_at = found.differs_at;
  counts_.prompt_tokens_reused += static_cast<uint64_t>(found.length);
  cache_.use(found);
  tell_progress(a);
  return Ok{};
}

// After a step: the state of a position that others will come back to.
void Loop::keep_state(Active& a) {
  const int32_t at = a.sequence->length();
  const bool is_prompt = at < static_cast<int32_t>(a.sampler.n_prompt());
  const auto among = [&](const std::vector<int32_t>& list) { return std::binary_search(list.begin(), list.end(), at); };
  const bool is_wanted = is_prompt ? among(a.cuts.keep) : at - a.kept_at >= kAnswerSnapshotTokens;
  if (!is_wanted) return;
  a.kept_at = at;
  const PrefixCache::Text text{a.request->cache_scope, a.sampler.tokens().first(at), a.request->owner};
  if (!cache_.wants(text)) return;
  const StateLayout& layout = model_.executable().layout();
  const uint64_t bytes = layout.recurrent_floats() * sizeof(float);
  // The page written next will be copied first.
  if (!cache_.make_room(bytes) || !make_room(bytes + layout.page_bytes())) return;
  catch_up_alone(a);
  if (auto snapshot = a.sequence->snapshot()) {
    cache_.keep(text, std::move(*snapshot), std::min(at, a.usage.prompt_tokens), !is_prompt || among(a.cuts.fillers));
  }
}

// At the end: where the next turn goes on, or where the same prompt does when it was cancelled.
void Loop::keep_last_state(Active& a) {
  if (!a.sequence) return;
  // Behind the token that it ended with there may be rows of a draft.
  const int32_t at = a.sequence->length() - a.draft.n_ahead;
  const PrefixCache::Text text{a.request->cache_scope, a.sampler.tokens().first(at), a.request->owner};
  if (at - a.kept_at >= kMinKeptTokens && cache_.wants(text) && a.sequence->rollback(a.draft.n_ahead)) {
    follow_back(a, a.draft.n_ahead);
    catch_up_alone(a);
    cache_.keep(text, a.sequence->take(), std::min(at, a.usage.prompt_tokens), false);
  }
  keep_draft_space(a);
  a.draft.companion = {};
  a.sequence.reset();
}

}  // namespace chimere::engine
