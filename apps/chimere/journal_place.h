// journal_place.h  Where the journal is, for commands beside `serve`.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "store/journal.h"

namespace chimere::apps {

inline constexpr const char* kJournalHelp =
    "the journal, a file or postgresql://USER@HOST/DATABASE; else what CHIMERE_JOURNAL says, else journal.db in "
    "$CHIMERE_HOME or the XDG data folder";

// A password on a command line is seen by everybody of the machine.
Status refuse_password_on_line(const std::string& place);

// `given` on the command line, else what CHIMERE_JOURNAL says, else the data folder's. Makes no file.
Result<std::shared_ptr<store::Journal>> open_existing_journal(const std::string& given);

}  // namespace chimere::apps
