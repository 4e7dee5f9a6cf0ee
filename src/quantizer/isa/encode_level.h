// encode_level.h  The encoders of one level: all bodies, compiled as this file's includer is.
#pragma once

#include "quantizer/encode_digits_body.h"
#include "quantizer/encode_k_body.h"
#include "quantizer/encode_plain_body.h"
#include "quantizer/encode_signed_body.h"
#include "quantizer/encode_ternary_body.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {

// Each member's type picks one of the overloads.
constexpr LevelEncoders encoders() {
  return {encode_group, encode_group, encode_group, encode_group, encode_group, encode_group,
          encode_group, encode_block, encode_block, encode_block, encode_block, encode_block,
          encode_block, encode_block, encode_block, encode_block, encode_block, encode_block,
          encode_block, encode_block, encode_block, encode_block, encode_block, encode_block};
}

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
