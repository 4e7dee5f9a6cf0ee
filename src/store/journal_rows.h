// journal_rows.h  Answers as rows of a database: masked, lists as JSON. For this folder alone.
#pragma once

#include <cstdint>
#include <string>

#include "store/journal.h"

namespace chimere::store {

struct JournalRow {
  std::string owner, request_id, answer_id, conversation;
  int64_t created = 0;
  std::string model, route;
  std::string artefacts, foreign, messages;  // JSON
  std::string answer;
  std::string tool_calls;  // JSON
  std::string tools;       // JSON; empty: there were none
  std::string finish;
  int64_t prompt_tokens = 0, completion_tokens = 0, milliseconds = 0;
  int64_t bytes = 0;  // of its texts, which count for what an owner may have
};
JournalRow row_of(const JournalAnswer& answer);

// About, in memory and on the disk.
uint64_t bytes_of(const JournalAnswer& answer);

bool is_thumb(FeedbackKind kind);

}  // namespace chimere::store
