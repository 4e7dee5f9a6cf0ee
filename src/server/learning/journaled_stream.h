// journaled_stream.h  An answer on its way to the client that is kept in the journal when it has ended well.
#pragma once

#include <memory>
#include <string>

#include "orchestrator/answer_stream.h"
#include "orchestrator/chat_request.h"
#include "store/journal.h"

namespace chimere::server {

// What the journal will know of the answer, before there is one.
store::JournalAnswer journal_entry(const orchestrator::ChatRequest& request, std::string model, std::string request_id,
                                   std::string answer_id);

// The stream itself, and a copy of what passes for the journal.
std::unique_ptr<orchestrator::AnswerStream> journaled(std::unique_ptr<orchestrator::AnswerStream> stream,
                                                      std::shared_ptr<store::Journal> journal,
                                                      store::JournalAnswer entry);

}  // namespace chimere::server
