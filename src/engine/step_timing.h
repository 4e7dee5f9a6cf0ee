// step_timing.h  Times steps and draft passes of 1 to 16 rows, so that drafts are tried where they pay.
#pragma once

#include <functional>
#include <span>

#include "models/model.h"
#include "speculative/step_costs.h"

namespace chimere::engine {

// Whether somebody waits for the model, so that timing ends with what every number of rows has been timed at once.
using InAHurry = std::function<bool()>;
inline bool nobody_waits() { return false; }

// Some milliseconds with a small model, below two seconds with a large one. Nothing is kept of what is run. draws: on the
// device, for which the executable is prepared; else a step ends with logits here.
Result<speculative::StepCosts> time_steps(models::Model& model, bool draws, const InAHurry& in_a_hurry);
// The same of the draft pass, with a guess from each row, of these blocks of the vocabulary (DraftPass::set_candidates).
// REQUIRES: the model has one.
Result<speculative::StepCosts> time_draft_passes(models::Model& model, std::span<const int32_t> candidates,
                                                 const InAHurry& in_a_hurry);
// The same of the drafter by blocks, with one guess of each, and what each guess of a block more costs. REQUIRES: the
// model has one.
struct BlockCosts {
  speculative::StepCosts passes;
  double guess;  // seconds
};
Result<BlockCosts> time_block_passes(models::Model& model, const InAHurry& in_a_hurry);

}  // namespace chimere::engine
