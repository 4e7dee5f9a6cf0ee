// answer_json.h  Pieces of JSON that the answers of several protocols share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orchestrator/chat_chunk.h"
#include "server/http/json.h"

namespace chimere::server {

// What all texts of one of OpenAI's completions repeat.
struct ResponseHead {
  std::string id;     // "chatcmpl-..."
  std::string model;  // as the request named it
  int64_t created = 0;
  bool logprobs = false;
  bool include_usage = false;  // at the end of a stream
  bool token_stats = false;
  bool verbose = false;                 // the answer says what the model was given
  bool llama_words = false;             // first delta and errors as llama.cpp writes them
  std::string system_fingerprint = {};  // "fp_...": of the model and the program; empty: not said
};

// Probabilities of 0 have no logarithm in JSON; this is what OpenAI sends for "very unlikely".
inline constexpr float kLowestLogprob = -9999.0f;

float shown_logprob(float logprob);
// [{"token", "logprob", "bytes", "top_logprobs"}]
Json logprobs_json(const std::vector<orchestrator::TokenInfo>& tokens);
// [{"token", "entropy", "certainty", "guessed"?}], for `token_stats`.
Json token_stats_json(const std::vector<orchestrator::TokenInfo>& tokens);
// Adds {"engram": {"passages": [{"source", "score", "text"}], "notes": [the same and "id"]}} if some took part.
void add_passages(Json& json, const std::vector<orchestrator::UsedPassage>& passages);
// Adds {"prompt_progress": {"total", "cache", "processed"}}, as llama.cpp has it, if there is one.
void add_progress(Json& json, const orchestrator::ChatChunk& chunk);
// Adds "mean_accepted_length", of drafts, and "draft_time_share" and "draft_gain" where the costs of steps are known.
void add_draft_figures(Json& json, uint64_t n_drafts, uint64_t n_accepted, const speculative::DraftTimes& times);
// Milliseconds and tokens a second.
Json timings_json(const engine::Usage& usage);
// "usage" and "timings".
void add_usage(Json& json, const engine::Usage& usage);
// The arguments of a call. Those of a call that was cut off lack their end.
Json arguments_object(const std::string& arguments);

}  // namespace chimere::server
