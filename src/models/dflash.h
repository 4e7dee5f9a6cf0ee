// dflash.h  A DFlash drafter: a small transformer in a file of its own that guesses a whole block of tokens in one pass,
// from hidden states of the model that it drafts for.
//
//   after each tapped layer of the model    context += fc_i x              (fc = [fc_0 | fc_1 | ...])
//   after the last of them                  k, v of every layer of the drafter = W (RMSNorm(context)), into its KV layers
//   a block [last token, MASK, MASK, ...]   embedded by the model, through the drafter's layers, whose queries see the
//                                           stored context and all of the block, to the model's output head
//
// The row of mask i guesses the token at its own place. What the drafter knows of a position is written by the trunk in
// the same step as the trunk's own state, into the same pages: whatever goes back, is kept, shared or restored takes
// both along, and there is nothing to catch up with. Rows of a block write behind the end of the sequence, where the
// next step of the trunk writes over them.
#pragma once

#include "backend/ops.h"
#include "models/weight_source.h"

namespace chimere::models {

// The program of a model with the drafter behind it as draft pass, and the taps in its trunk. Refuses a drafter that is
// of another kind or for another model.
Result<Program> attach_drafter(Program program, WeightSource& drafter);
// Refuses a drafter that no model could be given.
Status check_drafter(WeightSource& drafter);

}  // namespace chimere::models
