// sleep.cpp  The card is given to others while nobody needs the model, and taken again when somebody does.
#include <utility>

#include "engine/loop.h"

namespace chimere::engine {

using Clock = std::chrono::steady_clock;

// How long somebody waits at most for a card that others have given back.
constexpr std::chrono::milliseconds kWakeAgain{500};

// When nobody will have needed the model for long enough; never, while it sleeps.
Clock::time_point Loop::sleep_time() const {
  const bool may = config_.idle_sleep.count() > 0 && counts_.asleep_bytes == 0 && !sleep_problem_;
  return may ? last_step_ + config_.idle_sleep : Clock::time_point::max();
}

// All that lies on a card, or nothing.
Result<uint64_t> Loop::give_card_away() {
  TRY_ASSIGN(uint64_t given, model_.executable().sleep());
  if (draft_model_ && draft_model_->model().backend() == models::BackendKind::cuda) {
    auto more = draft_model_->model().executable().sleep();
    if (!more) {
      TRY(model_.executable().wake());
      return std::move(more.error());
    }
    given += *more;
  }
  return given;
}

Status Loop::take_card_again() {
  TRY(model_.executable().wake());
  return draft_model_ ? draft_model_->model().executable().wake() : Ok{};
}

// REQUIRES: nothing runs or waits.
void Loop::sleep_if_wanted() {
  if (wait_for_sleep_.empty() && Clock::now() < sleep_time()) return;
  place_ = "goes to sleep";
  Result<uint64_t> given = counts_.asleep_bytes;
  if (counts_.asleep_bytes == 0) {
    if (may_write_) cache_.flush();  // while it can be read
    may_write_ = false;
    given = give_card_away();
  }
  if (given) counts_.asleep_bytes = *given;
  sleep_problem_ = !given;
  publish_stats();
  for (const auto& done : std::exchange(wait_for_sleep_, {})) done(given);
}

Status Loop::wake() {
  if (counts_.asleep_bytes == 0) return Ok{};
  place_ = "wakes up";
  if (Status awake = take_card_again(); !awake) {
    awake.error().message = "the model sleeps and can not be woken: " + awake.error().message;
    return std::move(awake.error());
  }
  if (std::exchange(waits_for_card_, false) && config_.log) config_.log("the card has room again: the model is awake");
  counts_.asleep_bytes = 0;
  last_step_ = Clock::now();
  may_write_ = true;
  publish_stats();
  return Ok{};
}

// While others hold the card, whoever needs it keeps its place in the line and its deadline, and it is tried again. Where
// the model can not be woken at all, they get the reason.
void Loop::wake_for_work() {
  if (waiting_.empty() && !embeds_.has_work()) {
    waits_for_card_ = false;
    return;
  }
  if (waits_for_card_ && Clock::now() < wake_again_) return;
  sleep_problem_ = false;
  const Status awake = wake();
  if (awake) return;
  if (awake.error().code == Code::exhausted) {
    if (!std::exchange(waits_for_card_, true) && config_.log) config_.log(awake.error().message + "; requests wait");
    wake_again_ = Clock::now() + kWakeAgain;
    place_ = "waits for room on the card";
    return embeds_.end_late(Clock::now());
  }
  waits_for_card_ = false;
  for (auto& a : waiting_) fail(*a, awake.error());
  embeds_.end_all(awake.error());
  remove_ended();
}

}  // namespace chimere::engine
