// units.h  Work lists: how the units of a kernel are divided among blocks and warps.
//
//   UnitSplit, BlockUnits   neighbouring units go to one block: their weights lie in one run of memory
//   Dealing, DealtUnits     units are dealt to the warps like cards: where they are in order of size, all end together
//   RunDealing, DealtRuns   the same a few rounds at a time, so that what the units of a chunk share stays near
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

// Runs of neighbouring tiles of a chunk, `rounds` for each of a block's warps, dealt to the blocks.
struct RunDealing {
  Dealing runs;
  int tiles = 1, rounds = 1, n_warps = 1;

  RunDealing() = default;
  RunDealing(int tiles, int rounds, int n_warps, int n_blocks)
      : runs(simt::div_up(tiles, rounds * n_warps), n_blocks), tiles(tiles), rounds(rounds), n_warps(n_warps) {}
};

// The units of a warp.
struct DealtRuns {
  DealtUnits run;
  int tile = 0, round = 0;

  // The first run goes to block `from`.
  __device__ __forceinline__ void begin(const RunDealing& dealing, int from, int n_chunks) {
    const int block = static_cast<int>(blockIdx.x) - from;
    run.begin(dealing.runs, block < 0 ? block + static_cast<int>(gridDim.x) : block, n_chunks * dealing.runs.tiles);
    start(dealing);
    skip(dealing);
  }
  __device__ __forceinline__ bool is_left() const { return run.left > 0; }
  __device__ __forceinline__ int chunk() const { return run.chunk; }
  __device__ __forceinline__ void advance(const RunDealing& dealing) {
    next(dealing);
    skip(dealing);
  }

 private:
  __device__ __forceinline__ void start(const RunDealing& dealing) {
    round = 0;
    tile = run.tile * dealing.rounds * dealing.n_warps + simt::warp_id();
  }
  __device__ __forceinline__ void next(const RunDealing& dealing) {
    tile += dealing.n_warps;
    if (++round < dealing.rounds) return;
    run.advance(dealing.runs);
    start(dealing);
  }
  // The last run of a chunk may be longer than what is left of it.
  __device__ __forceinline__ void skip(const RunDealing& dealing) {
    while (run.left > 0 && tile >= dealing.tiles) next(dealing);
  }
};

}  // namespace chimere::cuda
