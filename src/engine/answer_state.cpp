#include "engine/answer_state.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace chimere::engine {
namespace {

// Loops of one answer that are broken before it is completed.
constexpr int kMaxBrokenLoops = 3;

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

bool Closing::is_at_end(std::span<const int32_t> answer) const {
  return answer.size() >= tail.size() && std::equal(tail.begin(), tail.end(), answer.end() - std::ssize(tail));
}

AnswerState::AnswerState(std::shared_ptr<const Request> request, int32_t room)
    : request_(std::move(request)),
      room_(room),
      max_tokens_(request_->max_tokens),
      budget_(request_->thought.budget),
      is_thinking_(request_->thought.open),
      loop_(request_->thinking.loop) {
  const ThinkingParams& p = request_->thinking;
  if (p.needs_stats()) window_ = CertaintyWindow(p.window, p.max_entropy);
}

AnswerState::Row AnswerState::before(std::span<const int32_t> tokens) {
  if (is_thinking_) steer_thought();
  Row row;
  row.in_thought = is_thinking_;
  row.needs_stats = request_->token_stats || (is_thinking_ && request_->thinking.needs_stats());
  origin_ = Origin::model;
  if (!forced_.empty()) {
    row.forced = forced_.front().id;
    origin_ = forced_.front().origin;
    forced_.pop_front();
    return row;
  }
  collect_bias(tokens);
  row.bias = bias_;
  return row;
}

AnswerState::Verdict AnswerState::judge(int32_t id, std::span<const int32_t> tokens, TokenConstraint* constraint) {
  const bool was_drawn = origin_ == Origin::model;
  if (contains(request_->stop_ids, id)) {
    if (is_thinking_) {
      close_thought();
    } else if (constraint && was_drawn && !constraint->may_end()) {
      force(constraint->completion(TokenConstraint::Part::inner), Origin::other);
    } else if (was_drawn && is_closing_due_ && static_cast<int32_t>(request_->closing.ids.size()) <= tokens_left()) {
      force(request_->closing.ids, Origin::other);
      ending_ = FinishReason::stop;
    } else {
      return Verdict::ends;
    }
    return forced_.empty() ? Verdict::ends : Verdict::replaced;
  }
  if (!was_drawn) return Verdict::stands;
  if (is_thinking_) {
    if (ends_in_reflection(id, tokens)) {
      close_thought();
      return forced_.empty() ? Verdict::stands : Verdict::replaced;
    }
    const std::vector<int32_t>& ends = request_->thought.end_ids;
    if (ends.empty() || id != ends.front() || !extends_thought()) return Verdict::stands;
    force(request_->thinking.extension, Origin::phrase);
    return Verdict::replaced;
  }
  const int32_t left = tokens_left();
  if (!constraint || !request_->completes || constraint->can_end_after(id, left - 1)) return Verdict::stands;
  const std::vector<int32_t> rest = constraint->completion(TokenConstraint::Part::all);
  // One that never fitted is cut as any other answer.
  if (rest.empty() || static_cast<int32_t>(rest.size()) > left) return Verdict::stands;
  ending_ = FinishReason::length;
  force(rest, Origin::other);
  return Verdict::replaced;
}

std::optional<FinishReason> AnswerState::after(const Sampled& token, std::span<const int32_t> tokens,
                                               TokenConstraint* constraint) {
  const Thought& thought = request_->thought;
  const bool was_thinking = is_thinking_;
  if (was_thinking) {
    is_thinking_ = !contains(thought.end_ids, token.id);
    n_thought_ += is_thinking_;
  } else if (n_tokens_ == 0 && token.id == thought.opener) {
    is_thinking_ = true;
  }
  ++n_tokens_;
  const bool ended_thought = was_thinking && !is_thinking_;
  // A thought may also end with the first token of a tool call, which is no part of what closes a thought.
  const bool is_answer = was_thinking ? ended_thought && !contains(thought.close, token.id) : origin_ != Origin::close;
  if (constraint && is_answer) {
    constraint->accept(token.id);
    ++n_answer_;
  }
  if (!constraint && !request_->closing.ids.empty() && is_answer && !is_thinking_) {
    ++n_answer_;
    needs_no_closing_ = needs_no_closing_ || contains(request_->closing.unless, token.id);
    is_closing_due_ = !needs_no_closing_ && !request_->closing.is_at_end(tokens.last(static_cast<size_t>(n_answer_)));
  }
  loop_.accept(tokens, constraint && is_answer ? constraint->n_text() : 0);
  if (was_thinking && is_thinking_) watch_thought(token);
  if (ended_thought) loop_.restart();

  if (draws_answer()) {
    if (ending_) return ending_;
    if (constraint && constraint->is_finished()) return FinishReason::stop;
    if (loop_.state() == LoopGuard::State::stuck && !break_loop(constraint)) return FinishReason::loop;
  }
  if (tokens_left() <= 0) return FinishReason::length;
  return std::nullopt;
}

void AnswerState::update(const Update& update) {
  for (const int32_t id : update.force) forced_.push_back({id, Origin::other});
  if (update.max_tokens > 0) max_tokens_ = update.max_tokens;
  if (update.thinking_budget) budget_ = *update.thinking_budget;
  if (update.stop_thinking) budget_ = 0;
}

void AnswerState::force(std::span<const int32_t> ids, Origin origin) {
  forced_.clear();
  for (const int32_t id : ids) forced_.push_back({id, origin});
}

void AnswerState::close_thought() {
  force(request_->thought.close, Origin::close);
  is_thinking_ = false;
  loop_.restart();
}

int32_t AnswerState::thought_limit() const {
  const int32_t limit = budget_ >= 0 ? budget_ : std::numeric_limits<int32_t>::max();
  const int32_t reserved = request_->thinking.answer_tokens;
  if (reserved == 0) return limit;
  const int32_t total = max_tokens_ >= 0 ? std::min(room_, max_tokens_) : room_;
  const int32_t left = total - n_tokens_ - static_cast<int32_t>(request_->thought.close.size()) - reserved;
  return std::min(limit, n_thought_ + std::max(left, 0));
}

void AnswerState::steer_thought() {
  const ThinkingParams& p = request_->thinking;
  const int32_t limit = thought_limit();
  if (n_thought_ >= limit) {
    // A phrase that steers a thought has no place behind its end. What a caller forced comes before it.
    const auto is_phrase = [](const Forced& f) { return f.origin == Origin::phrase; };
    if (std::all_of(forced_.begin(), forced_.end(), is_phrase)) close_thought();
    return;
  }
  if (!forced_.empty()) return;
  const bool is_sure = n_thought_ >= p.least && is_at_break_ && is_certain();
  if (is_sure || loop_.state() == LoopGuard::State::stuck) return close_thought();
  if (p.warn_before == 0 || was_warned_) return;
  // The warning and what follows it must fit into the budget, which stays exact; a late start is no start.
  const int32_t left = limit - n_thought_ - static_cast<int32_t>(p.warning.size());
  if (left > p.warn_before || left < 0) return;
  was_warned_ = true;
  force(p.warning, Origin::phrase);
}

// Whether a thought that the model wants to end goes on with ThinkingParams::extension instead; counts it.
bool AnswerState::extends_thought() {
  const ThinkingParams& p = request_->thinking;
  if (n_extensions_ >= p.max_extensions || p.extension.empty() || !window_.is_full()) return false;
  // One token of its own at least, or the phrase would be for nothing.
  if (n_thought_ + static_cast<int32_t>(p.extension.size()) >= thought_limit()) return false;
  if (window_.certainty() >= p.extend_below) return false;
  ++n_extensions_;
  window_.clear();
  return true;
}

bool AnswerState::ends_in_reflection(int32_t id, std::span<const int32_t> tokens) const {
  const ThinkingParams& p = request_->thinking;
  if (!p.closes_at_reflection || !suppresses_ || !p.triggers || n_thought_ < p.least) return false;
  const std::span<const int32_t> sentence = tokens.last(n_sentence_);
  return std::any_of(p.triggers->begin(), p.triggers->end(), [&](const std::vector<int32_t>& word) {
    return word.back() == id && std::equal(sentence.begin(), sentence.end(), word.begin(), word.end() - 1);
  });
}

bool AnswerState::is_certain() const {
  return window_.is_full() && window_.certainty() >= request_->thinking.close_above;
}

void AnswerState::watch_thought(const Sampled& token) {
  const ThinkingParams& p = request_->thinking;
  is_at_break_ = p.is_break(token.id);
  n_sentence_ = is_at_break_ ? 0 : n_sentence_ + 1;
  // The stats of a forced token say nothing about the model's mind.
  if (origin_ != Origin::model) return;
  window_.push(token.max_prob, token.entropy);
  if (!window_.is_full()) return;
  const float certainty = window_.certainty();
  if (certainty >= p.suppress_above) suppresses_ = true;
  if (certainty < p.release_below) suppresses_ = false;
}

void AnswerState::collect_bias(std::span<const int32_t> tokens) {
  bias_.clear();
  const auto& triggers = request_->thinking.triggers;
  if (is_thinking_ && suppresses_ && triggers && !request_->thinking.closes_at_reflection) {
    for (const std::vector<int32_t>& word : *triggers) {
      // A word of several tokens loses its last one where the others stand already.
      const size_t before = word.size() - 1;
      if (before > tokens.size() || !std::equal(word.begin(), word.end() - 1, tokens.end() - static_cast<long>(before)))
        continue;
      bias_.push_back({word.back(), -std::numeric_limits<float>::infinity()});
    }
  }
  loop_.penalise(tokens, bias_);
}

std::vector<int32_t> AnswerState::forced_next() const {
  const auto is_phrase = [](const Forced& f) { return f.origin == Origin::phrase; };
  if (is_thinking_ && n_thought_ >= thought_limit() && std::all_of(forced_.begin(), forced_.end(), is_phrase)) {
    return request_->thought.close;
  }
  std::vector<int32_t> ids;
  for (const Forced& f : forced_) ids.push_back(f.id);
  return ids;
}

int32_t AnswerState::tokens_left() const {
  int32_t left = room_ - n_tokens_;
  if (max_tokens_ >= 0) left = std::min(left, max_tokens_ - n_tokens_);
  if (request_->max_answer_tokens >= 0) left = std::min(left, request_->max_answer_tokens - n_answer_);
  return left;
}

bool AnswerState::break_loop(TokenConstraint* constraint) {
  if (!constraint || constraint->may_end()) return false;
  const bool is_last = ++n_loops_ > kMaxBrokenLoops;
  force(constraint->completion(is_last ? TokenConstraint::Part::all : TokenConstraint::Part::inner), Origin::other);
  if (forced_.empty()) return false;
  if (is_last) ending_ = FinishReason::loop;
  loop_.restart();
  return true;
}

}  // namespace chimere::engine
