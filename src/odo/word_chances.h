// word_chances.h  How likely a model is to answer with each of some words: their log-probabilities behind one prompt, without
// drawing one.
//
// Each word is one short request behind the same prompt, held to that word by a grammar: the log-probabilities of its tokens are
// the model's own, whatever the grammar allows (sampler.h). The first of them reads the prompt, the others begin where it ended.
// They are requests like any other: owner, share of the engine, deadline.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/chat_service.h"

namespace chimere::odo {

// A question that is answered by a word and changes nothing that other answers are computed from: greedy, without a thought,
// notes or drafts, in a cache scope of its own.
orchestrator::ChatRequest word_question(std::vector<chat::Message> messages, uint64_t cache_scope);

// Of each word as the whole answer, in nats. Blocks; not the engine's thread. Refused for a model without a chat template, and
// where the time is up. `what`: for error messages.
Result<std::vector<double>> word_chances(orchestrator::ChatService& service, const orchestrator::ChatRequest& question,
                                         const std::vector<std::string>& words, const std::string& what);

}  // namespace chimere::odo
