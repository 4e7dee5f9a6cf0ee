// shortage.cpp  What happens where memory for states ends: nothing fails that could go on later.
//
// The limit is what the configuration says, until the device refuses to give that much. Then
//   1. spaces for drafts and the cache give way, until what was asked for is there;
//   2. the request waits, and others go on; the limit is what was held then, so that no more of them begin;
//   3. where nobody can go on, the device is asked for more than the limit, as other programs give memory back, too;
//   4. then the youngest of those that wait gives its state back (Loop::give_back) and begins again when there is room.
// Only a request that is alone and has no room fails. The limit is raised again when nothing runs, and by a part every
// kAskAgain: what the device does not have then lowers it again.
//
// A state that was given back is computed again by the arithmetic that it was computed by: the prompt in the same slices,
// the answer in slices of the decode class, whose rows have the bits of single tokens. So the answer is the same to the
// bit, but for prompts that went on from an answer that had been decoded, and is kept nowhere any more (docs/caches.md).
#include <algorithm>
#include <cstdio>

#include "engine/loop.h"

namespace chimere::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kAskAgain{10};
constexpr std::chrono::minutes kBetweenLines{10};
constexpr std::chrono::milliseconds kTextsRest{100};

std::string megabytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

}  // namespace

// Whether something was freed, so that it is worth asking the device again.
bool Loop::give_way(uint64_t bytes) {
  const uint64_t held = held_bytes();
  drop_drafts();
  if (held_bytes() < held) return true;
  cache_.release(bytes);
  return held_bytes() < held;
}

void Loop::lower_limit() {
  ++counts_.shortage.refusals;
  state_limit_ = std::min(state_limit_, held_bytes());
  ask_again_ = Clock::now() + kAskAgain;
}

// Slots for experts on a card give way to states and come back without anybody's doing here.
void Loop::note_slots() {
  const auto experts = model_.executable().card_traffic();
  if (!experts) return;
  const uint64_t before = n_slots_.value_or(experts->n_slots), now = experts->n_slots;
  n_slots_ = now;
  if (before == now || !config_.log) return;
  config_.log(now < before ? "the card has no more memory for conversations, as other programs take it: of " +
                                 std::to_string(before) + " experts that it held, " + std::to_string(now) +
                                 " stay there, and the others are read from RAM, which is slower"
                           : "the card has memory again: it holds " + std::to_string(now) + " experts, " +
                                 std::to_string(before) + " before");
}

void Loop::raise_limit() {
  const bool is_idle = running_.empty() && waiting_.empty() && !embeds_.has_work();
  const uint64_t below = config_.state_bytes - std::min(config_.state_bytes, state_limit_);
  const auto now = Clock::now();
  if (below == 0 || (!is_idle && now < ask_again_)) return;
  ask_again_ = now + kAskAgain;
  state_limit_ += is_idle ? below : std::min(below, config_.state_bytes / 8);
}

void Loop::wait_for_memory(Active& a) {
  if (a.waits_for_memory) return;
  a.waits_for_memory = true;
  ++counts_.shortage.waits;
  const auto now = Clock::now();
  if (!config_.log || now < next_line_) return;
  next_line_ = now + kBetweenLines;
  const bool is_refused = state_limit_ < config_.state_bytes;
  config_.log("memory for conversations is short: " + megabytes(held_bytes()) + " of " +
              megabytes(config_.state_bytes) + " are in use" +
              (is_refused ? " and the device has no more, as other programs or the weights take it" : "") +
              ". Requests wait for each other, and none fails. More of them run at a time with " +
              (is_refused ? "other programs closed, fewer weights there (--vram, --cpu-moe)" : "a larger --state-gb") +
              ", shorter conversations (--ctx), or smaller keys and values (--kv-k q8_0 --kv-v q4_0)");
}

Error Loop::no_room_for(const Active& a) const {
  const auto n_tokens = static_cast<int32_t>(a.sampler.tokens().size());
  return {Code::exhausted,
          "out of state memory: this request alone, with " + std::to_string(n_tokens) + " tokens until now, needs " +
              std::to_string(bytes_for(n_tokens)) + " bytes of state; " +
              (state_limit_ < config_.state_bytes ? "the device has " + std::to_string(state_limit_) + " of the "
                                                  : std::string("the limit is ")) +
              std::to_string(config_.state_bytes)};
}

// Its state goes to the cache, from where memory is taken next; with a disk it may come back from there.
void Loop::give_back(Active& a) {
  ++counts_.shortage.given_back;
  keep_last_state(a);
  const auto at = std::find_if(running_.begin(), running_.end(), [&](const auto& r) { return r.get() == &a; });
  waiting_.push_front(std::move(*at));
  running_.erase(at);
}

// The step has nothing in it, and nobody's end gives memory back. has_asked: for more than the limit, in this step.
void Loop::end_standstill(bool has_asked) {
  Active* youngest = nullptr;
  int n_holding = 0;
  bool was_refused = false;
  for (auto& a : running_) {
    if (!a->events || !a->sequence) continue;
    ++n_holding;
    was_refused |= a->was_refused;
    if (a->is_stalled && (!youngest || a->id > youngest->id)) youngest = a.get();
  }
  if (!youngest) return;
  if (!has_asked && !was_refused && state_limit_ < config_.state_bytes) {
    asks_beyond_limit_ = true;
    state_limit_ = config_.state_bytes;
    return;
  }
  if (n_holding > 1) return give_back(*youngest);
  fail(*youngest, no_room_for(*youngest));
}

// A text that is embedded found no memory.
Refused Loop::refuse_text(uint64_t bytes) {
  lower_limit();
  if (give_way(bytes)) return Refused::ask_again;
  embeds_rest_until_ = Clock::now() + kTextsRest;
  return running_.empty() ? Refused::fail : Refused::wait;
}

}  // namespace chimere::engine
