// truncation.h  top-k, then top-p, then min-p: from a row of scores to the candidates of the draw.
#pragma once

#include <vector>

#include "sampling/sampling_params.h"
#include "sampling/score_row.h"

namespace chimere {

bool truncates(const SamplingParams& params, const ScoreRow& row);

// The candidates that survive, in no particular order; at least one when the row has a score at all.
//   top_k   the k best (score, then lower id)
//   top_p   of those, best first, the fewest whose weights (weight.h) sum to at least top_p times the sum over all
//   min_p   of those, the ones with exp(scale * (score - max)) >= min_p
// REQUIRES: truncates(params, row), row.max() != kNoScore
void truncate(const ScoreRow& row, const SamplingParams& params, float scale, std::vector<Candidate>& out);

}  // namespace chimere
