// streams.h  Answers that are written together, with guesses where that pays and without, by turns: what looking for
// guesses costs where many answers run.
#pragma once

#include "models/model.h"
#include "speculative/mode.h"

namespace chimere {

struct StreamsPlan {
  int streams = 32;
  int n_prompt = 32, n_decode = 128;  // tokens of each answer
  int repeats = 5;                    // pairs that are timed, at least one
  speculative::Mode speculate = speculative::Mode::automatic;
};

// Prints tokens a second of each pair and the median of their ratios. Prompts are of random tokens, and what is drawn is
// random with a model of random weights: little is to be guessed there. REQUIRES: batches have room for all streams.
Status time_streams(models::Model& model, const StreamsPlan& plan);

}  // namespace chimere
