// matvec_choice.h  Which kernel a decode-class product takes, and with how many blocks: from shapes and the card alone.
//
//   kernel       rows   where
//   float_rows   any    all matrices are of one float type
//   staged_two   2      a block's share of the weights fits into its shared memory (matvec_staged_two.h)
//   staged_rows  2..8   the same on tensor cores; 2 where the other does not fit (matvec_staged_rows.h)
//   tensor_rows  >= 8   tensor cores; more rows, and larger matrices (matvec_rows.h)
//   staged       1      a block's share of the weights fits into its shared memory (matvec_staged.h)
//   ring         1..2   larger matrices: every warp has work enough to cycle through slots (matvec_ring.h); two rows
//                       only of 32 lanes (matvec_ring_two.h)
//   registers    any    the rest: weights go straight into registers (matvec_device.h)
//   any_format   any    no format with kernels of its own, an odd number of groups, or exact: matvec_device.h too
//
// Kernels other than the first multiply the matrices of one format, that of most bytes; the rows of others, usually
// few, are multiplied beside them. A row's bits do not depend on the number of rows: float_rows and any_format have
// another order of additions than the other six, and the number does not decide between the two groups.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/common/card_facts.h"
#include "backend/cuda/kernels/dense/matvec.h"

namespace chimere::cuda {

enum class MatvecKernel { float_rows, staged_two, staged_rows, tensor_rows, staged, ring, registers, any_format };

// Of the kernels on tensor cores.
inline constexpr int kTeams = 2, kTeamWarps = 8, kTeamThreads = 32 * kTeamWarps;
inline constexpr int kTileRows = 16;   // of weights
inline constexpr int kColumnTile = 8;  // rows of activations
static_assert(kFewDecodeRows == kColumnTile);
inline constexpr int kPassTiles = 4;  // column tiles of a pass, at most
inline constexpr int kMaxSlots = 8;
inline constexpr int kMaxStagedTiles = 16;  // of a block, where all of its weights are in shared memory
inline constexpr uint32_t kPairBytes = 640, kPairScales = 512;  // of a pair of groups and a column tile

// Of the kernel for floats: rows of weights that a warp takes at a time.
inline constexpr int kFloatTileRows = 4;

// Blocks per SM of the kernel with weights in registers. For one row the number of warps counts most: they hide each
// other's latency. (One weight row per lane and four blocks: 23 % slower. Two blocks, and room for one of the next
// kernel: 7 % slower.)
CHIMERE_BOTH constexpr int matvec_blocks(int n_acts) { return n_acts >= 16 ? 1 : n_acts == 1 ? 3 : 2; }
// There a lane multiplies so many weight rows with n_acts rows of activations at a time. More weight rows for more
// activations: what is read from shared memory then serves all of them.
CHIMERE_BOTH constexpr int tile_rows(int n_acts) { return n_acts >= 16 ? 4 : 2; }

// For rows of 2048 elements a lane takes one pair of groups: the kernels for one row then read the activations once.
CHIMERE_BOTH constexpr bool holds_pair(int width) { return row_groups(width) == 64; }

// The launcher's layout: projections in the kernel's own format first, then the others, with their row tiles numbered
// consecutively; a tile is what one warp computes at a time.
struct MatvecPlan {
  MatvecArgs args;
  int n_own = 0;
  int own_tiles = 0;
  int all_tiles = 0;
  int first_tile[kMaxProjections] = {};  // of each projection
  int n_passes = 1;         // of pass_rows each; neighbouring blocks take the passes of the same tiles, so that the L2
                            // cache serves all but the first
  int lanes_log2 = 5;       // of the lanes that share a row of the kernel's own format, a pair of groups each
  int side_lanes_log2 = 5;  // of the others, a group each
  bool quantise = true;     // some product takes bytes

  CHIMERE_BOTH int lanes() const { return 1 << lanes_log2; }
};

CHIMERE_BOTH int side_rows_per_tile(const MatvecPlan& p, const MatvecOut& o) {
  return p.args.exact || o.weight.is_float() ? 1 : 32 >> p.side_lanes_log2;
}

struct MatvecChoice {
  MatvecKernel kernel = MatvecKernel::any_format;
  DType format = DType::F32;  // of the kernel; F32 of any_format
  int tile_rows = 1;          // of weights, in a tile of that format
  int pass_rows = 1;          // of activations, that a block multiplies at a time
  int n_passes = 1;
  int blocks = 0;
  size_t shared_bytes = 0;
  // Weights in shared memory: slots of a warp's ring, or of a block's tiles.
  int n_slots = 0;
  uint32_t slots_at = 0, sums_at = 0;  // tensor_rows: in shared memory, behind the activations
  bool together = false;               // tensor_rows: both teams work on the same tile
  // staged, staged_two and staged_rows:
  uint32_t staged_bytes = 0;  // of a block's weights
  int side_slots = 0;         // side tiles of a block that are copied, where they are of Q8_0
  uint32_t side_slot_bytes = 0;
  // staged_two and staged_rows:
  bool makes_records = false;  // every block, for itself
  int parts = 0;               // staged_rows: of a tile, that warps take
};

MatvecChoice choose_matvec(const MatvecArgs& args, const CardFacts& card);

// The plan for it: projections in order, tiles numbered.
MatvecPlan plan_matvec(const MatvecArgs& args, const MatvecChoice& choice);

// Of a weight row in a slot of the tensor cores: an odd number of 16-byte pieces, so that the eight rows which a warp
// reads side by side never meet in a bank.
constexpr uint32_t padded_row(uint32_t row_bytes) { return row_bytes / 16 % 2 == 1 ? row_bytes : row_bytes + 16; }

}  // namespace chimere::cuda
