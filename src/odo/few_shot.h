// few_shot.h  Answers that their owner accepted, shown to the model as examples before a question that is like theirs.
//
// Of the owner's journal alone (store/journal.h): rated 4 or 5, or with the text that would have been right. Not used is what
// texts of others took part in (tools, documents, the web), what is the middle of a conversation, and what was a call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "odo/run_stream.h"
#include "orchestrator/chat_service.h"
#include "store/journal.h"

namespace chimere::odo {

struct Example {
  int64_t id = 0;  // in the journal
  std::string question, answer;
};

// The nearest to the question by their words, best last, at most `n`; they share two fifths of all words. Masked, as kept.
Result<std::vector<Example>> examples_for(store::Journal& journal, const std::string& owner,
                                          const std::string& question, size_t n);

// As turns before the conversation, in a step `few_shot`; a quarter of the context at most.
void show_examples(store::Journal* journal, const std::string& owner, int n, const orchestrator::ChatService& chat,
                   RunTeller& teller, orchestrator::ChatRequest& request);

}  // namespace chimere::odo
