// journal_rows.h  Answers as rows and as JSON. For this folder alone.
#pragma once

#include <string>
#include <vector>

#include "chat/message.h"
#include "store/journal.h"
#include "store/schema.h"

namespace chimere::store {

extern const Schema kJournalSchema;
// Is made where it is missing: files of before have none, and programs of before look at none.
extern const char* const kScoreTable;
extern const char* const kToolTable;

// In the order in which KeptAnswer has them.
extern const char* const kAnswerColumns;
KeptAnswer read_answer(const Statement& row);

// Masked.
std::string messages_json(const std::vector<chat::Message>& messages);
std::string calls_json(const std::vector<chat::ToolCall>& calls);
std::string tools_json(const std::vector<chat::Tool>& tools);
std::string names_json(const std::vector<std::string>& names);

// About, in memory and on the disk.
uint64_t bytes_of(const JournalAnswer& answer);

}  // namespace chimere::store
