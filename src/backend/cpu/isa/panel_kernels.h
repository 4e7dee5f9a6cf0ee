// panel_kernels.h  The table of matmul kernels one instruction-set level provides.
#pragma once

#include <cstdint>

#include "backend/cpu/isa/act_block.h"
#include "backend/cpu/isa/panel_layout.h"

namespace chimere::cpu {

inline constexpr int kMaxTile = 16;  // tokens a kernel call may handle

// The out-of-order window of one core covers too few misses to fill the memory bus: weights are asked for about this
// far ahead (rounded up to whole panels), into the L2 cache. Measured on Zen 4, random Q4_0 experts of 74 KB, on a busy
// machine: 12 GB/s without; 26, 24, 26, 18 GB/s at 4, 8, 16, 32 KiB; 16 GB/s at 16 KiB into the L1.
inline constexpr int64_t kPrefetchBytes = 4096;

// Some consecutive panels times a few tokens. Plain pointers: nothing here is owned.
struct TileArgs {
  const uint8_t* panels;  // first panel
  int64_t panel_bytes;
  int64_t scales_offset;
  int n_panels;
  int last_rows;  // rows of the last panel to store, 1..16; all others have 16
  int64_t n_cols;
  const PanelTables* tables;
  const ActBlock* const* act;  // a token: its blocks (8-bit kernels)
  const float* const* x;       // a token: its floats (float kernels)
  float* const* y;             // a token: where the first row of the first panel goes
};
using TileFn = void (*)(const TileArgs&);

// Entries for token counts a level has no special kernel for are null; those for one token never are.
struct PanelKernels {
  TileFn int8[kPanelKinds][kMaxTile + 1];  // quantised kinds only
  TileFn f32[kPanelKinds][kMaxTile + 1];
  // Blocks of Codes::grid to blocks of Codes::bits8.
  void (*expand_grid)(const GridTable& grid, const uint8_t* src, int64_t n_blocks, uint8_t* dst);
  void (*quantize)(const float* x, int64_t k, ActBlock* blocks);  // one row, ceil(k / 32) blocks
};

const PanelKernels& panel_kernels_scalar();
#if defined(__x86_64__)
const PanelKernels& panel_kernels_avx2();
const PanelKernels& panel_kernels_avx512();
const PanelKernels& panel_kernels_avx512vnni();
#elif defined(__aarch64__)
const PanelKernels& panel_kernels_neon();
const PanelKernels& panel_kernels_dotprod();
const PanelKernels& panel_kernels_i8mm();
#endif

}  // namespace chimere::cpu
