// fingerprint.h  A number that says which vocabulary token ids belong to.
#pragma once

#include <cstdint>

#include "tokenizer/tokenizer.h"

namespace chimere {

// Of kind, pre-tokenizer, and the text and type of every token, in order. Part of file formats.
uint64_t vocabulary_fingerprint(const Tokenizer& tokenizer);

}  // namespace chimere
