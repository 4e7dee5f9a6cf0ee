// journal_url.h  Where a journal is: a file, or a URL of PostgreSQL, whose password nobody is shown.
#pragma once

#include <string>

#include "base/result.h"

namespace chimere::store {

inline constexpr const char* kJournalUrlForm = "postgresql://USER@HOST/DATABASE";

// "postgresql://...", "postgres://..."; everything else is a file.
bool is_journal_url(const std::string& place);
bool has_password(const std::string& url);
// With stars in place of passwords; a file's name as it is.
std::string without_password(const std::string& place);
// What could show parts of a password in messages of others is refused.
Status check_journal_url(const std::string& url);

}  // namespace chimere::store
