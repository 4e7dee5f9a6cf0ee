// llama.cpp  Llama, Mistral and their like; Mixtral when the file has experts. Rotary pairs are adjacent rows.
#include "models/layers.h"

namespace chimere::models {

Result<Program> build_llama(WeightSource& source) {
  return build_transformer(source, {.pairing = Rope::Pairing::adjacent, .qk_norm = false});
}

}  // namespace chimere::models
