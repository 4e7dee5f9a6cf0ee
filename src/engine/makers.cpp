// makers.cpp  Who makes guesses at a cost, the draft model, a drafter or the model's draft pass, and where that may pay.
#include <algorithm>

#include "engine/loop.h"

namespace chimere::engine {

Loop::Maker Loop::maker_for(const Active& a) const {
  if (a.draft.companion.is_on) {
    if (!companion_guesses(a)) return {};
    return {speculative::draft_model_kind, draft_model_->costs()};
  }
  if (const DraftBlocks* blocks = model_.draft_blocks()) {
    if (!speculative::uses_drafter(a.draft.mode)) return {};
    return {speculative::dflash_kind, pass_costs_ ? &*pass_costs_ : nullptr, blocks->n_rows - 1};
  }
  if (!a.draft.following.is_on) return {};
  return {speculative::pass_kind, pass_costs_ ? &*pass_costs_ : nullptr};
}

// Whether the draft model or the draft pass is likelier to be right than what guessed already, for nothing.
bool Loop::prefers_pass(const Active& a) const {
  const Draft& d = a.draft;
  const Maker maker = maker_for(a);
  if (!maker.kind) return false;
  if (d.guesses.empty()) return true;
  const speculative::Kind kind = d.guesses.front().kind;
  return kind != speculative::kForced &&
         d.acceptance.cautious_chance(kind) < d.acceptance.cautious_chance(maker.kind(0));
}

// On an answer as long as those of such requests were lately, beside as many as run now. Where it does not pay, a few
// requests are followed all the same, to see how good guesses are now, if the best that such a source makes would pay;
// fewer where there is much to read.
bool Loop::guesses_pay_for(const Active& a, double n_tokens, const speculative::StepCosts* costs, KindOf kind,
                           uint64_t& n_left_out) {
  constexpr uint64_t kOneIn = 16, kOneInOfLong = 128;
  constexpr float kBest = 0.95f;
  if (!step_costs_ || !costs) return false;
  const auto n_others = std::count_if(running_.begin(), running_.end(),
                                      [&](const auto& other) { return other->events && other.get() != &a; });
  const int n_rows = static_cast<int>(std::min<std::ptrdiff_t>(n_others, config_.max_running - 1)) + 1;
  const auto gain_with = [&](auto&& chance) {
    // All of them are as this one.
    speculative::Chances one;
    for (int i = 0; i < config_.draft_max; ++i) one.push_back(chance(i));
    const std::vector<speculative::Chances> chances(static_cast<size_t>(n_rows), one);
    const speculative::DraftPasses passes{std::vector(chances.size(), costs)};
    const int most = std::min(n_rows - 1 + kDecodeTokens, model_.executable().max_rows());
    double gain = 1;
    speculative::plan_depths(*step_costs_, n_rows, most, chances, &passes, &gain);
    return gain;
  };
  const double n_answer = std::min(experience_of(a).answer_tokens, static_cast<double>(a.answer.tokens_left()));
  const double to_read = n_tokens * costs->step(kDecodeTokens) / kDecodeTokens;
  const double gain = gain_with([&](int i) { return a.draft.acceptance.cautious_chance(kind(i)); });
  if (n_answer * step_costs_->step(n_rows) / n_rows * (1 - 1 / gain) > to_read) return true;
  const bool is_long = to_read > 8 * step_costs_->step(1);
  return n_left_out++ % (is_long ? kOneInOfLong : kOneIn) == 0 && gain_with([](int) { return kBest; }) > 1;
}

}  // namespace chimere::engine
