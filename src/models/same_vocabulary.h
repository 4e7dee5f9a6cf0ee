// same_vocabulary.h  Whether token ids of one file mean the same in another.
#pragma once

#include "gguf/gguf.h"

namespace chimere::models {

// Files of one family may pad their lists to other lengths: the shorter one has to be the beginning of the longer, which
// may have this many entries more.
inline constexpr size_t kMaxPadding = 512;

// An error says how many ids differ and names the first of them.
Status check_same_vocabulary(const gguf::Metadata& model, const gguf::Metadata& other);

}  // namespace chimere::models
