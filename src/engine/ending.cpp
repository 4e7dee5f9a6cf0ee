// ending.cpp  How an answer that is bound to a form comes to its end: whole, where that is possible.
//
//   a stop inside free text: the model has said what it wanted in a string; the string is closed and the model goes on
//   a loop: what is being written is closed and the model goes on; after a few of them the answer is completed
//   a limit: the answer is completed while there is room for the shortest way
//
// And how its masks are made: short work here, long work on a thread of its own while the answer sits out.
#include <algorithm>
#include <limits>

#include "engine/loop.h"

namespace chimere::engine {
namespace {

// Loops of one answer that are broken before it is completed.
constexpr int kMaxBrokenLoops = 3;
// Steps towards masks that one answer may take in a step of all: well below a millisecond. Almost every mask needs
// fewer, or is known.
constexpr int64_t kMaskSteps = 50'000;

}  // namespace

int32_t Loop::tokens_left(const Active& a) const {
  int32_t left = context_length_ - static_cast<int32_t>(a.sampler.tokens().size());
  if (a.request.max_tokens >= 0) left = std::min(left, a.request.max_tokens - a.usage.completion_tokens);
  if (a.request.max_answer_tokens >= 0) left = std::min(left, a.request.max_answer_tokens - a.answer_tokens);
  return left;
}

Status Loop::take_instead(Active& a, const std::vector<int32_t>& ids, Sampled& sampled) {
  a.forced.assign(ids.begin(), ids.end());
  a.inputs = next_inputs(a);
  TRY_ASSIGN(sampled, replaced(a, sampled));
  return Ok{};
}

std::vector<int32_t> Loop::instead_of_stop(Active& a) const {
  if (!a.constraint || a.inputs.forced || a.constraint->may_end()) return {};
  return a.constraint->completion(TokenConstraint::Part::inner);
}

std::vector<int32_t> Loop::instead_of_cut(Active& a, int32_t id) const {
  if (!a.constraint || !a.request.completes || a.request.thought.open || a.inputs.forced) return {};
  const int32_t left = tokens_left(a);
  if (a.constraint->can_end_after(id, left - 1)) return {};
  std::vector<int32_t> rest = a.constraint->completion(TokenConstraint::Part::all);
  // It never fitted: the answer is cut as any other.
  if (static_cast<int32_t>(rest.size()) > left) return {};
  return rest;
}

bool Loop::break_loop(Active& a) const {
  if (!a.constraint || a.constraint->may_end()) return false;
  const bool is_last = ++a.n_loops > kMaxBrokenLoops;
  const std::vector<int32_t> rest =
      a.constraint->completion(is_last ? TokenConstraint::Part::all : TokenConstraint::Part::inner);
  if (rest.empty()) return false;
  if (is_last) a.ending = FinishReason::loop;
  a.forced.assign(rest.begin(), rest.end());
  a.control.close();
  return true;
}

void Loop::prepare_masks() {
  for (auto& a : running_) {
    const bool draws = a->events && a->sequence && !a->request.thought.open && a->forced.empty();
    if (!draws || !a->constraint || a->waits_for_mask) continue;
    if (a->constraint->prepare(kMaskSteps)) continue;
    a->waits_for_mask = true;
    masks_.make(a->constraint->clone(), [this, id = a->id](std::shared_ptr<TokenConstraint> made) {
      post([id, made = std::move(made)](Loop& loop) {
        Active* waiting = loop.find(id);
        if (!waiting) return;
        waiting->constraint = made;
        waiting->waits_for_mask = false;
      });
    });
  }
}

}  // namespace chimere::engine
