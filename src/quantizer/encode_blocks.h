// encode_blocks.h  What the encoders of single blocks share: their input, their scales, and the list of them.
//
// A block is encoded in units of its own: its values times a power of two that brings the largest to [1, 2). Sums of
// squares then neither overflow nor vanish, whatever the rows hold. Scales go back to the units of the file when they
// are rounded to the half that is stored, and what the half holds is what the searches go on with.
#pragma once

#include <cstdint>

#include "tensor/quant_blocks.h"

namespace chimere::quantizer {

struct BlockInput {
  const float* x;   // [kElems], the largest magnitude in [1, 4)
  const float* w;   // [kElems], positive, about one on average over a row
  float to_file;    // factor from these units to those of the file, a power of two
  float from_file;  // its inverse
};

struct StoredHalf {
  uint16_t bits;
  float value;  // in the units of the block
};

// The nearest half. The largest stands in for what is larger: outliers are cut off instead of becoming infinite.
StoredHalf store_half(const BlockInput& in, float value);

// 1 / d, and 0 for a scale of 0, under which every code decodes alike.
inline float inverse_of(float d) { return d == 0.0f ? 0.0f : 1.0f / d; }

// Two bits a value, of 256: see "crumbs" in quant_blocks.h.
inline void pack_crumbs(const uint8_t* codes, uint8_t* q) {
  for (int n = 0; n < 2; ++n, codes += 128, q += 32) {
    for (int l = 0; l < 32; ++l) {
      q[l] = static_cast<uint8_t>((codes[l] & 3) | (codes[l + 32] & 3) << 2 | (codes[l + 64] & 3) << 4 |
                                  (codes[l + 96] & 3) << 6);
    }
  }
}

// Encoders of one block. REQUIRES: the block has a value that is not zero.
template <class Block>
using BlockEncoder = void (*)(const BlockInput& in, Block& out);

// Encoders of eight blocks at once, by their rows and weights; weights are null where all columns count the same.
// Values are those of the file, of any size, all of them zero, too.
inline constexpr int kGroup = 8;
template <class Block>
using GroupEncoder = void (*)(const float* const* x, const float* const* w, Block* out);
template <class Block>
using EvenGroupEncoder = void (*)(const float* const* x, Block* out);

// Searches are compiled for several levels of a machine (isa/). All of them give the same bits.
struct LevelEncoders {
  GroupEncoder<BlockQ4_0> q4_0;
  GroupEncoder<BlockQ5_0> q5_0;
  GroupEncoder<BlockQ8_0> q8_0;
  GroupEncoder<BlockIQ4_NL> iq4_nl;
  GroupEncoder<BlockMXFP4> mxfp4;
  EvenGroupEncoder<BlockQ4_1> even_q4_1;
  EvenGroupEncoder<BlockQ5_1> even_q5_1;
  BlockEncoder<BlockQ4_1> q4_1;
  BlockEncoder<BlockQ5_1> q5_1;
  BlockEncoder<BlockQ2_K> q2_k;
  BlockEncoder<BlockQ3_K> q3_k;
  BlockEncoder<BlockQ4_K> q4_k;
  BlockEncoder<BlockQ5_K> q5_k;
  BlockEncoder<BlockQ6_K> q6_k;
  BlockEncoder<BlockIQ4_XS> iq4_xs;
  BlockEncoder<BlockTQ1_0> tq1_0;
  BlockEncoder<BlockTQ2_0> tq2_0;
  BlockEncoder<BlockIQ1_S> iq1_s;
  BlockEncoder<BlockIQ1_M> iq1_m;
  BlockEncoder<BlockIQ2_XXS> iq2_xxs;
  BlockEncoder<BlockIQ2_XS> iq2_xs;
  BlockEncoder<BlockIQ2_S> iq2_s;
  BlockEncoder<BlockIQ3_XXS> iq3_xxs;
  BlockEncoder<BlockIQ3_S> iq3_s;
};
extern const LevelEncoders kEncodersAnyMachine;
extern const LevelEncoders kEncodersAvx2;  // x86-64 alone
const LevelEncoders& level_encoders();     // the best of this machine

}  // namespace chimere::quantizer
