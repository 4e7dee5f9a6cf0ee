// openai_json.h  Pieces of JSON that several of OpenAI's answers share.
#pragma once

#include <vector>

#include "orchestrator/chat_chunk.h"
#include "server/http/json.h"

namespace chimere::server {

// Probabilities of 0 have no logarithm in JSON; this is what OpenAI sends for "very unlikely".
inline constexpr float kLowestLogprob = -9999.0f;

float shown_logprob(float logprob);
// [{"token", "logprob", "bytes", "top_logprobs"}]
Json logprobs_json(const std::vector<orchestrator::TokenInfo>& tokens);
// [{"token", "entropy", "certainty"}], for `token_stats`.
Json token_stats_json(const std::vector<orchestrator::TokenInfo>& tokens);
Json usage_json(const engine::Usage& usage);
// Adds {"engram": {"passages": [{"source", "score", "text"}], "notes": [the same and "id"]}} if some took part.
void add_passages(Json& json, const std::vector<orchestrator::UsedPassage>& passages);
// Milliseconds and tokens a second.
Json timings_json(const engine::Usage& usage);
const char* finish_name(orchestrator::Finish finish);

}  // namespace chimere::server
