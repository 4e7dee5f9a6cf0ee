#include "tokenizer/fingerprint.h"

#include "base/hash.h"

namespace chimere {

uint64_t vocabulary_fingerprint(const Tokenizer& tokenizer) {
  uint64_t hash = hash64(tokenizer.pre(), static_cast<uint64_t>(tokenizer.kind()));
  for (int32_t id = 0; id < tokenizer.n_vocab(); ++id) {
    hash = hash64(tokenizer.token_text(id), hash + static_cast<uint64_t>(tokenizer.token_type(id)));
  }
  return hash;
}

}  // namespace chimere
