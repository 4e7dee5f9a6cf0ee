// units.h  Work lists: how the units of a kernel are divided among blocks and warps.
//
//   UnitSplit, BlockUnits   neighbouring units go to one block: their weights lie in one run of memory
//   Dealing, DealtUnits     units are dealt to the warps like cards: where they are in order of size, all end together
//
// Steps are computed once, by the launcher where it knows the numbers: divisions cost a kernel of a few microseconds a
// tenth of them.
#pragma once

#include "backend/cuda/simt/simt.h"

namespace chimere::cuda {

// Copies of a block's share of the weights are cut into so many stages (staged.h).
inline constexpr int kStages = 4;

// Units cut into neighbouring parts of nearly the same size, one a block.
struct UnitSplit {
  int each = 0, extra = 0;  // the first `extra` blocks have one more

  UnitSplit() = default;
  CHIMERE_BOTH UnitSplit(int all, int n_blocks) : each(all / n_blocks), extra(all % n_blocks) {}
  CHIMERE_BOTH int most() const { return each + (extra > 0 ? 1 : 0); }
};

// Units [first, end) of a block.
struct BlockUnits {
  int first, end;

  CHIMERE_BOTH BlockUnits(const UnitSplit& split, int block)
      : first(block * split.each + min(block, split.extra)), end(first + split.each + (block < split.extra ? 1 : 0)) {}
  CHIMERE_BOTH int size() const { return end - first; }
  CHIMERE_BOTH int stage_begin(int stage) const { return first + size() * stage / kStages; }
};

// Every stride-th unit for one warp. A unit is a tile of a chunk, `tiles` of them to a chunk.
struct Dealing {
  int tiles = 1, stride = 1;
  int chunk_step = 1, tile_step = 0;  // of a warp, from one unit to the next

  Dealing() = default;
  CHIMERE_BOTH Dealing(int tiles, int stride)
      : tiles(tiles), stride(stride), chunk_step(stride / tiles), tile_step(stride % tiles) {}
};

// The units of a warp.
struct DealtUnits {
  int left = 0, chunk = 0, tile = 0;  // left: with the one it is at

  // From unit `first` of n on.
  __device__ __forceinline__ void begin(const Dealing& dealing, int first, int n) {
    left = simt::div_up(max(0, n - first), dealing.stride);
    chunk = first / dealing.tiles;
    tile = first - chunk * dealing.tiles;
  }
  __device__ __forceinline__ void advance(const Dealing& dealing) {
    --left;
    chunk += dealing.chunk_step;
    tile += dealing.tile_step;
    if (tile >= dealing.tiles) {
      tile -= dealing.tiles;
      ++chunk;
    }
  }
};

}  // namespace chimere::cuda
