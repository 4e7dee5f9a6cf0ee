// forget.h  What was learned from somebody, or from one conversation, goes: out of the journal, and out of what was made.
//
// Tables, closings, words, examples and settings of thoughts are made anew without the conversation, from what they were made from: bit by bit the
// ones that never saw it. What can not be made anew in this way (a prompt, an adapter, examples or a setting of which one was left out
// for the sake of the one that goes) is taken out of use; the version before it that never saw the
// conversation is in use then, or none.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "improve/artefact_store.h"
#include "store/journal.h"
#include "tokenizer/tokenizer.h"

namespace chimere::improve {

struct ForgottenCounts {
  uint64_t answers = 0;  // of the journal
  uint64_t rebuilt = 0;  // artefacts that were made anew
  uint64_t dropped = 0;  // artefacts that are gone
  uint64_t runs = 0;     // whose record changed or went
};

// exhausted: a run is under way, which may be learning from it at this moment.
Result<ForgottenCounts> forget_owner(store::Journal& journal, ArtefactStore& store, const std::string& owner);
Result<ForgottenCounts> forget_conversation(store::Journal& journal, ArtefactStore& store, const Tokenizer& tokenizer,
                                            const std::string& owner, const std::string& conversation);

}  // namespace chimere::improve
