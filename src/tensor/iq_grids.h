// iq_grids.h  The codebooks of the IQ1, IQ2 and IQ3 types: constants of the file format.
//
// An entry is a vector of 8 (IQ1, IQ2) or 4 (IQ3) small integers, element 0 first, so an entry may be loaded as one
// 64-bit or 32-bit word. The choice of points follows no formula; the tables are expanded at compile time from the
// packed digits in iq_grids.cpp.
#pragma once

#include <cstdint>

namespace chimere {

struct IqGrids {
  alignas(64) int8_t iq2_xxs[256][8];  // 8, 25, 43
  alignas(64) int8_t iq2_xs[512][8];   // 8, 25, 43
  alignas(64) int8_t iq2_s[1024][8];   // 8, 25, 43
  alignas(64) int8_t iq3_xxs[256][4];  // 4, 12, 20, 28, 36, 44, 52, 62
  alignas(64) int8_t iq3_s[512][4];    // 1, 3, ... 15
  alignas(64) int8_t iq1[2048][8];     // -1, 0, 1; IQ1_S and IQ1_M
};

extern const IqGrids kIqGrids;

}  // namespace chimere
