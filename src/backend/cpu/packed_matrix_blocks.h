// packed_matrix_blocks.h  Splits file blocks into codes and scales, before these are interleaved into a panel.
#pragma once

#include <cstdint>

#include "tensor/quant_blocks.h"

namespace chimere::cpu {

// A file block taken apart. d, m and scale are indexed as the Scales of its kind reads them.
struct BlockParts {
  uint8_t codes[256];    // those of Codes::grid are the next three fields instead
  uint8_t grid[64];      // low bits of the index of four columns
  uint8_t grid_high[8];  // bit 8 of eight indexes
  uint8_t signs[32];     // of eight columns
  uint16_t d[8];         // halves: one for the block, or one for each 32 (each 16: NVFP4)
  uint16_t m;            // half: minimum or its factor
  float row_d;           // of types whose scale is the row's
  uint8_t scale[16];     // a sub-block of 16 or 32
  uint8_t min[8];        // a sub-block of 32
};

void take(const BlockQ4_0& b, BlockParts& out);
void take(const BlockQ4_1& b, BlockParts& out);
void take(const BlockQ5_0& b, BlockParts& out);
void take(const BlockQ5_1& b, BlockParts& out);
void take(const BlockQ8_0& b, BlockParts& out);
void take(const BlockIQ4_NL& b, BlockParts& out);
void take(const BlockMXFP4& b, BlockParts& out);
void take(const BlockNVFP4& b, BlockParts& out);
void take(const BlockQ1_0& b, BlockParts& out);
void take(const BlockQ2_0& b, BlockParts& out);
void take(const BlockTQ1_0& b, BlockParts& out);
void take(const BlockTQ2_0& b, BlockParts& out);
void take(const BlockQ2_K& b, BlockParts& out);
void take(const BlockQ3_K& b, BlockParts& out);
void take(const BlockQ4_K& b, BlockParts& out);
void take(const BlockQ5_K& b, BlockParts& out);
void take(const BlockQ6_K& b, BlockParts& out);
void take(const BlockIQ4_XS& b, BlockParts& out);
void take(const BlockIQ2_XXS& b, BlockParts& out);
void take(const BlockIQ2_XS& b, BlockParts& out);
void take(const BlockIQ2_S& b, BlockParts& out);
void take(const BlockIQ3_XXS& b, BlockParts& out);
void take(const BlockIQ3_S& b, BlockParts& out);
void take(const BlockIQ1_S& b, BlockParts& out);
void take(const BlockIQ1_M& b, BlockParts& out);
void take(const BlockIQ2_K& b, BlockParts& out);
void take(const BlockIQ3_K& b, BlockParts& out);
void take(const BlockIQ4_K& b, BlockParts& out);
void take(const BlockIQ5_K& b, BlockParts& out);
void take(const BlockIQ6_K& b, BlockParts& out);
void take(const BlockIQ4_KS& b, BlockParts& out);

}  // namespace chimere::cpu
