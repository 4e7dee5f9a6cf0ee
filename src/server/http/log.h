// log.h  The log: one line for each event on the standard error, as text or as a JSON object.
#pragma once

#include <string>
#include <string_view>

namespace chimere::server {

enum class LogFormat { text, json };

// For the whole process; text without it.
void start_log(LogFormat format);

// A line with facts of its own: `text` for people, `json` (an object) where the log is JSON.
void log_facts(const std::string& text, const std::string& json);

// What a client sent must not forge lines of the log: other than printable ASCII becomes '?', and what is longer is
// cut.
std::string printable(std::string_view text, size_t longest = 100);

}  // namespace chimere::server
