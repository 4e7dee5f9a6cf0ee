// drafting.cpp  Several tokens of an answer in one step: guesses go into the batch behind its last token, and a token
// is drawn from each of their rows as if it had come alone.
//
// A row's bits do not depend on how many rows its slice has (the numbers contract, decode class), and each token is
// drawn, judged and accepted in order, by the same functions as without drafts, with inputs that are computed once the
// token before it is known. So the answer is the same to the bit. A row counts as long as the guess before it is the
// token that was taken; behind the first that is not, the sequence goes back.
#include <algorithm>
#include <bit>
#include <utility>

#include "engine/loop.h"
#include "engine/step_timing.h"

namespace chimere::engine {
namespace {

using speculative::Chances;
using speculative::Guess;
using speculative::Mode;

// The only token that the mask allows; -1 where there are several.
int32_t only_allowed(std::span<const uint64_t> mask) {
  int32_t only = -1;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == 0) continue;
    if (only >= 0 || !std::has_single_bit(mask[i])) return -1;
    only = static_cast<int32_t>(i * 64) + std::countr_zero(mask[i]);
  }
  return only;
}

bool allows(std::span<const uint64_t> mask, int32_t id) {
  return (mask[static_cast<size_t>(id) / 64] >> (id % 64) & 1) != 0;
}

// Cuts the guesses where the form does not go on with them, and adds what nothing else can follow but. Of a guess whose
// row could not be drawn from (the form is whole behind it, or its mask takes long) nothing is gained.
// REQUIRES: the next mask is made.
void hold_to_form(std::vector<Guess>& guesses, const TokenConstraint& form, int most) {
  const std::unique_ptr<TokenConstraint> ahead = form.clone();
  size_t n = 0;
  while (n < static_cast<size_t>(most)) {
    const std::span<const uint64_t> mask = ahead->mask();
    if (const int32_t only = only_allowed(mask); only >= 0) {
      if (n < guesses.size() && guesses[n].id != only) guesses.resize(n);
      if (n == guesses.size()) guesses.push_back({only, speculative::kForced});
      guesses[n].kind = speculative::kForced;
    }
    if (n == guesses.size() || !allows(mask, guesses[n].id)) break;
    ahead->accept(guesses[n].id);
    if (ahead->is_finished() || !ahead->prepare(kMaskSteps)) break;
    ++n;
  }
  guesses.resize(n);
}

}  // namespace

void Loop::time_steps_once() {
  if (timed_steps_) return;
  timed_steps_ = true;
  timed_in_a_hurry_ = false;
  // Whoever waits is not kept waiting for figures that are a little better.
  const auto in_a_hurry = [this] {
    std::lock_guard lock(mutex_);
    timed_in_a_hurry_ |= stopping_ || !messages_.empty() || !running_.empty() || !waiting_.empty();
    return timed_in_a_hurry_;
  };
  auto costs = time_steps(model_, draws_on_device_, in_a_hurry);
  if (!costs) return;  // without them nothing is planned
  step_costs_.emplace(std::move(*costs));
  if (model_.draft_blocks()) {
    if (auto blocks = time_block_passes(model_, in_a_hurry)) {
      pass_costs_.emplace(std::move(blocks->passes));
      counts_.drafter.block_seconds = pass_costs_->step(1);
      counts_.drafter.guess_seconds = block_guess_s_ = blocks->guess;
    }
  } else if (model_.has_drafts()) {
    if (auto passes = time_draft_passes(model_, likely_tokens_.blocks(), in_a_hurry))
      pass_costs_.emplace(std::move(*passes));
  }
  if (pass_costs_ && !model_.draft_blocks()) counts_.pass_seconds = pass_costs_->step(1);
  if (draft_model_) draft_model_->time(in_a_hurry);
  if (draft_model_ && draft_model_->costs()) counts_.draft_model_seconds = draft_model_->costs()->step(1);
  counts_.step_seconds.clear();
  for (int rows = 1; rows <= kDecodeTokens; rows *= 2) counts_.step_seconds.emplace_back(rows, step_costs_->step(rows));
}

// When nobody waits.
void Loop::time_steps_again() {
  place_ = "times steps";
  timed_steps_ = false;
  time_steps_once();
}

// How many guesses may be tried in the next step.
int Loop::draft_room(const Active& a) const {
  const Mode mode = a.draft.mode;
  if (mode == Mode::off || a.answer.n_tokens() == 0) return 0;
  // Rows that the device cannot draw from are drawn from here: more bytes come back than drafts could save.
  const bool is_asked_for = mode != Mode::automatic && mode != Mode::ngram;
  if (draws_on_device_ && !draws_ahead(a) && !is_asked_for) return 0;
  // A step ends where state is kept without drafts, so that the same positions are kept.
  const int32_t to_kept = a.kept_at + kAnswerSnapshotTokens - a.sequence->length();
  return std::min({config_.draft_max, kDecodeTokens - 1, a.answer.tokens_left() - 1, to_kept - 1});
}

void Loop::guess(Active& a, int most) {
  Draft& d = a.draft;
  const bool uses_text = speculative::uses_text(d.mode), uses_own = speculative::uses_own(d.mode);
  const bool all_sources = uses_text && uses_own;
  if (all_sources) {
    for (const int32_t id : a.answer.forced_next()) d.guesses.push_back({id, speculative::kForced});
    if (!d.guesses.empty()) return d.guesses.resize(std::min<size_t>(d.guesses.size(), static_cast<size_t>(most)));
  }
  if (uses_text) d.repeats.propose(a.sampler.tokens(), most, d.guesses);
  if (uses_own && d.own) {
    std::vector<Guess> own;
    d.own->propose(a.sampler.tokens(), most, own);
    const auto chance = [&](const std::vector<Guess>& g) {
      return g.empty() ? 0.0f : d.acceptance.cautious_chance(g.front().kind);
    };
    if (chance(own) >= chance(d.guesses)) std::swap(own, d.guesses);
    if (!own.empty()) d.passed_over = own.front();
  }
  // The answer would end with these, and nothing stands behind its end.
  const std::vector<int32_t>& stops = a.request->stop_ids;
  const auto is_stop = [&](const Guess& g) { return std::find(stops.begin(), stops.end(), g.id) != stops.end(); };
  d.guesses.erase(std::find_if(d.guesses.begin(), d.guesses.end(), is_stop), d.guesses.end());
  const bool has_form = a.constraint && a.answer.draws_answer();
  // prepare_masks() made this one. Others are made where they are needed: to look ahead costs a mask for each token.
  if (has_form && all_sources && only_allowed(a.constraint->mask()) >= 0) hold_to_form(d.guesses, *a.constraint, most);
}

// The depths of all answers but those that always draft, which are in `n_rows`: with passes where they are preferred, or
// without any, whichever gains more.
void Loop::choose_depths(const std::vector<Active*>& decoders, int n_rows, int max_rows) {
  std::vector<Chances> free(decoders.size()), preferred(decoders.size());
  std::vector<const speculative::StepCosts*> costs(decoders.size(), nullptr);
  bool has_free_guesses = false, has_passes = false;
  for (size_t i = 0; i < decoders.size(); ++i) {
    const Draft& d = decoders[i]->draft;
    if (d.mode == Mode::always) continue;
    const bool is_forced = !d.guesses.empty() && d.guesses.front().kind == speculative::kForced;
    const size_t limit = d.mode == Mode::automatic && !is_forced ? static_cast<size_t>(d.most) : d.guesses.size();
    for (size_t g = 0; g < std::min(limit, d.guesses.size()); ++g) {
      free[i].push_back(d.acceptance.cautious_chance(d.guesses[g].kind));
    }
    has_free_guesses |= !free[i].empty();
    has_passes |= d.from_pass;
  }
  if (!has_free_guesses && !has_passes) return;
  time_steps_once();
  if (!step_costs_) return;
  for (size_t i = 0; i < decoders.size(); ++i) {
    const Draft& d = decoders[i]->draft;
    preferred[i] = free[i];
    if (d.mode == Mode::always || !d.from_pass) continue;
    const Maker maker = maker_for(*decoders[i]);
    if (!maker.costs) continue;  // they could not be timed
    costs[i] = maker.costs;
    preferred[i].clear();
    const int most = d.mode == Mode::automatic ? std::clamp(d.most, 1, maker.most) : maker.most;
    for (int g = 0; g < std::min(draft_room(*decoders[i]), most); ++g) {
      preferred[i].push_back(d.acceptance.cautious_chance(maker.kind(g)));
    }
  }
  std::vector<int> depths(decoders.size(), 0);
  double gain = 1, gain_with_passes = 1;
  if (has_free_guesses) depths = speculative::plan_depths(*step_costs_, n_rows, max_rows, free, nullptr, &gain);
  if (has_passes) {
    const bool has_blocks = model_.draft_blocks() && pass_costs_;
    const speculative::DraftPasses passes{costs, has_blocks ? &*pass_costs_ : nullptr, block_guess_s_};
    auto with = speculative::plan_depths(*step_costs_, n_rows, max_rows, preferred, &passes, &gain_with_passes);
    if (gain_with_passes > gain) depths = std::move(with);
  }
  for (size_t i = 0; i < decoders.size(); ++i) {
    Draft& d = decoders[i]->draft;
    if (d.mode == Mode::always) continue;
    d.depth = depths[i];
    // What cost nothing is still compared with what is drawn.
    d.from_pass &= gain_with_passes > gain && d.depth > 0 && costs[i];
  }
}

void Loop::plan_drafts(const std::vector<Active*>& decoders) {
  bool has_prompts = false;
  for (auto& a : running_) {
    a->draft.guesses.clear();
    a->draft.passed_over.reset();
    a->draft.depth = 0;
    a->draft.from_pass = false;
    a->draft.n_compared = 0;
    has_prompts |= a->events && a->sequence && a->pending().size() > 1;
  }
  const int all_rows = model_.executable().max_rows();
  const int max_rows = all_rows - (has_prompts ? config_.prefill_tokens : 0);
  int n_rows = static_cast<int>(decoders.size());
  may_pay_ =
      !step_costs_ || n_rows == 0 || speculative::could_pay(*step_costs_, n_rows, n_rows, all_rows, config_.draft_max);
  std::optional<WorkAdded> work;  // from the first that is looked for
  for (Active* a : decoders) {
    // What is not looked for costs nothing; when fewer answers run, all that was written meanwhile is read at once.
    if (!may_pay_ && a->draft.mode != Mode::always) continue;
    const int room = draft_room(*a);
    if (room <= 0) continue;
    if (!work) work.emplace(work_clock_, draft_work_);
    guess(*a, room);
    Draft& d = a->draft;
    d.from_pass = prefers_pass(*a);
    if (d.mode != Mode::always) continue;
    d.depth = std::clamp(max_rows - n_rows, 0,
                         d.from_pass ? std::min(room, maker_for(*a).most) : static_cast<int>(d.guesses.size()));
    n_rows += d.depth;
  }
  choose_depths(decoders, n_rows, max_rows);
  if (model_.draft_blocks()) {
    guess_with_blocks(decoders);
  } else {
    guess_with_passes(decoders);
  }
  guess_beside(decoders);
  for (Active* a : decoders) {
    Draft& d = a->draft;
    if (d.depth == 0 || !a->constraint || !a->answer.draws_answer()) continue;
    hold_to_form(d.guesses, *a->constraint, d.depth);
    d.depth = std::min(d.depth, static_cast<int>(d.guesses.size()));
  }
}

// False when nothing is drafted, or when there is no memory for it that nobody else has a use for.
bool Loop::add_draft(Batch& batch, Active& a) {
  Draft& d = a.draft;
  const int n_tokens = 1 + d.depth;
  if (d.depth == 0) return false;
  if (!a.sequence->has_draft_space() && !spare_draft_spaces_.empty()) {
    a.sequence->give_draft_space(std::move(spare_draft_spaces_.back()));
    spare_draft_spaces_.pop_back();
  }
  if (!has_free(a.sequence->bytes_to_begin_draft(n_tokens))) {
    d.depth = 0;
    return false;
  }
  auto slice = a.sequence->begin_draft(n_tokens, true);
  if (!slice) {
    if (slice.error().code == Code::exhausted) lower_limit();
    d.depth = 0;
    return false;
  }
  a.waits_for_memory = false;
  slice->first_row = a.first_row = batch.n_rows();
  slice->adapters = a.request->adapters.get();
  a.rows_in_batch = n_tokens;
  a.logit_index = static_cast<int32_t>(batch.logit_rows.size());
  for (int i = 0; i < n_tokens; ++i) {
    batch.logit_rows.push_back(batch.n_rows());
    batch.tokens.push_back(i == 0 ? a.pending().front() : d.guesses[static_cast<size_t>(i) - 1].id);
    if (i > 0) counts_.guesses.tried(d.guesses[static_cast<size_t>(i) - 1].kind, i - 1);
  }
  batch.slices.push_back(*slice);
  d.n_ahead = d.depth;
  ++a.usage.drafts;
  a.usage.draft_tokens += d.depth;
  counts_.draft_tokens += static_cast<uint64_t>(d.depth);
  if (d.from_pass && d.passes()) counts_.draft_pass_tokens += static_cast<uint64_t>(d.depth);
  ++counts_.drafts;
  return true;
}

// The rows were run and committed, the inputs of the first are set.
void Loop::draw_draft(Active& a) {
  Draft& d = a.draft;
  while (true) {
    // Only the last position can be one that is kept: draft_room() saw to it.
    if (d.n_ahead == 0) keep_state(a);
    const bool is_drawn = draws_[static_cast<size_t>(a.logit_index)].params != nullptr;
    Result<Sampled> sampled = take_drawn(a);
    if (!sampled) return fail(a, sampled.error());
    accept(a, std::move(*sampled));
    if (!a.events) return;  // it ended here, and went back for what is kept of it
    if (d.n_ahead == 0) return;
    const Guess& guessed = d.guesses[static_cast<size_t>(d.depth - d.n_ahead)];
    if (a.sampler.tokens().back() != guessed.id) break;
    // A mask that takes long is made elsewhere, as without drafts.
    if (a.constraint && a.answer.draws_answer() && !a.constraint->prepare(kMaskSteps)) break;
    // What was drawn ahead knew of nothing but the guesses. Of a row that is given more, the next step draws.
    if (is_drawn && !next_row_is_plain(a)) break;
    --d.n_ahead;
    ++a.logit_index;
    set_inputs(a);
  }
  const WorkAdded work(work_clock_, draft_work_);
  const Status gone_back = a.sequence->rollback(d.n_ahead);
  follow_back(a, d.n_ahead);
  d.n_ahead = 0;
  if (!gone_back) fail(a, gone_back.error());
}

// An answer waits for the whole step, so its times are the step's; a guess of it that is right saves it a step, and all
// answers together their share of one.
void Loop::count_draft_times(bool is_decode, double seconds) {
  DraftControl& control = counts_.draft_control;
  control.may_pay = may_pay_;
  control.n_answers = control.depth = 0;
  int n_answers = 0, n_guesses = 0;
  const auto has_token = [](const Active& a) {
    return a.events && a.logit_index >= 0 && a.rows_in_batch == a.draft.depth + 1;
  };
  for (const auto& a : running_) {
    if (!has_token(*a)) continue;
    ++n_answers;
    n_guesses += a->draft.depth;
    control.n_answers += a->draft.depth > 0 ? 1 : 0;
    control.depth = std::max(control.depth, a->draft.depth);
  }
  saved_of_all_ = saved_of_one_ = 0;
  if (n_answers == 0 || !step_costs_) return;
  const double plain = step_costs_->step(n_answers), with_guesses = step_costs_->step(n_answers + n_guesses);
  saved_of_one_ = plain;
  saved_of_all_ = plain / n_answers;
  speculative::DraftTimes times;
  // Beside a prompt nobody knows what they took of the step.
  const double steps = is_decode ? seconds : with_guesses;
  times.steps = steps + draft_work_;
  times.spent = std::min(with_guesses - plain, steps) + draft_work_;
  draft_work_ = 0;
  counts_.draft_times.add(times);
  for (auto& a : running_) {
    if (has_token(*a)) a->usage.draft_times.add(times);
  }
}

std::vector<DraftControl::Chances> Loop::chances_by_source() const {
  std::vector<DraftControl::Chances> all;
  for (int i = 0; i < speculative::kSources; ++i) {
    DraftControl::Chances of{static_cast<speculative::Source>(i), {}, {}};
    bool has_guessed = false;
    for (int k = 0; k < speculative::kKinds; ++k) {
      const auto kind = static_cast<speculative::Kind>(k);
      if (speculative::source_of(kind) != of.source) continue;
      of.chances.push_back(acceptance_.cautious_chance(kind));
      of.tried.push_back(acceptance_.tried(kind));
      has_guessed |= of.tried.back() > 0;
    }
    if (has_guessed) all.push_back(std::move(of));
  }
  return all;
}

// By whether its answer is held to a form, and whether it is drawn.
speculative::Experience& Loop::experience_of(const Active& a) {
  const size_t kind = (a.constraint ? 2 : 0) + (a.request->sampling.temperature < kGreedyBelow ? 1 : 0);
  return experience_[kind];
}

void Loop::learn(Active& a, speculative::Kind kind, bool is_right) {
  a.draft.acceptance.learn(kind, is_right);
  experience_of(a).acceptance.learn(kind, is_right);
  acceptance_.learn(kind, is_right);
}

// A token was taken: what was guessed in its place is judged by it. True where the guess was computed and is right.
bool Loop::compare_guess(Active& a, int32_t id) {
  Draft& d = a.draft;
  const auto judge = [&](const Guess& guess) {
    learn(a, guess.kind, guess.id == id);
    return guess.id == id;
  };
  if (d.passed_over) judge(*d.passed_over);
  d.passed_over.reset();
  // Of a probe up to the first that is wrong.
  if (d.n_probed < d.probe.size() && !judge(d.probe[d.n_probed++])) d.probe.clear();
  if (d.n_compared >= d.guesses.size()) return false;
  const size_t i = d.n_compared++;
  const bool is_right = judge(d.guesses[i]);
  const auto n_before = static_cast<int>(i);
  const bool is_computed = n_before < d.depth;
  d.n_in_a_row = is_right ? d.n_in_a_row + 1 : 0;
  const int next = is_computed ? std::min(2 * (n_before + 1), kDecodeTokens - 1) : d.n_in_a_row > 1 ? 1 : 0;
  d.most = is_right ? std::max(d.most, next) : n_before;
  if (!is_right || !is_computed) return false;
  counts_.guesses.taken(d.guesses[i].kind, static_cast<int>(i));
  ++a.usage.draft_tokens_accepted;
  a.usage.draft_times.saved += saved_of_one_;
  ++counts_.draft_tokens_accepted;
  counts_.draft_times.saved += saved_of_all_;
  if (d.from_pass && d.passes()) ++counts_.draft_pass_tokens_accepted;
  return true;
}

bool Loop::has_free(uint64_t bytes) const {
  if (bytes == 0) return true;
  uint64_t at_most = cache_.ram_bytes() + embeds_.held_bytes() + spare_bytes() + companion_bytes() + bytes;
  for (const auto& a : running_) at_most += a->sequence ? a->sequence->size_bytes() : 0;
  return at_most <= state_limit_;
}

void Loop::keep_draft_space(Active& a) {
  const bool is_full = static_cast<int>(spare_draft_spaces_.size()) >= config_.max_running;
  if (a.sequence->draft_bytes() > 0 && !is_full) spare_draft_spaces_.push_back(a.sequence->take_draft_space());
}

uint64_t Loop::spare_bytes() const {
  uint64_t bytes = 0;
  for (const DraftSpace& space : spare_draft_spaces_) bytes += space.size_bytes();
  return bytes;
}

// Gives back what sequences keep for drafts, but of those whose draft is in the batch, and what the draft model has.
void Loop::drop_drafts() {
  spare_draft_spaces_.clear();
  for (auto& a : running_) {
    a->draft.companion = {};
    if (a->sequence && a->draft.n_ahead == 0) a->sequence->take_draft_space();
  }
}

}  // namespace chimere::engine
