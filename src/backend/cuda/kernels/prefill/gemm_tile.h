// gemm_tile.h  What a thread block of a product works on: shared by the fast and the exact kernels.
#pragma once

#include "backend/cuda/kernels/common/hidden.h"
#include "backend/cuda/kernels/prefill/gemm.h"
#include "backend/cuda/simt/simt.h"

namespace chimere::cuda {

inline constexpr int kExactTile = 64;  // rows and outputs of a tile of the exact kernel

struct TileOutput {
  Weight weight;
  const float* bias;
  float* out;
  int stride;
  int first_tile;  // of the column tiles
  int add;
  float scale;
};

struct TileJob {
  HalfRows half;
  const float* exact;
  int width;
  int n_rows;

  // For experts; `pairs` is null where one matrix multiplies all rows.
  const int32_t* pairs;
  const ExpertTile* tiles;
  const int32_t* n_tiles;
  int rows_by_pair;  // x has one row per token, pair / n_used; else row i of x belongs to pairs[i]
  int out_by_pair;
  int n_used;

  int n_outputs;
  TileOutput outputs[kMaxGemmOutputs];
  // For the inner rows of a feed-forward part: outputs[0] is the gate projection and `up` the up-projection; without a
  // gate outputs[0] is the up-projection and `up` is empty. A bias has one row per expert.
  Weight up;
  const float* up_bias;
  op::Activation activation;
  GemmHidden hidden;
};

struct Tile {
  int expert;
  int first;  // row of x, or index into pairs
  int n_rows;

  __device__ __forceinline__ int64_t input_row(const TileJob& job, int r) const {
    return job.rows_by_pair ? job.pairs[first + r] / job.n_used : first + r;
  }
  __device__ __forceinline__ int64_t output_row(const TileJob& job, int r) const {
    return job.out_by_pair ? job.pairs[first + r] : first + r;
  }
};

// False when there is nothing at this index of the grid.
__device__ __forceinline__ bool find_tile(const TileJob& job, int index, int tile_rows, Tile& tile) {
  if (job.pairs) {
    if (index >= *job.n_tiles) return false;
    tile = {job.tiles[index].expert, job.tiles[index].first, job.tiles[index].n_rows};
    return true;
  }
  tile = {0, index * tile_rows, min(tile_rows, job.n_rows - index * tile_rows)};
  return true;
}

__device__ __forceinline__ const TileOutput& find_output(const TileJob& job, int column_tile) {
  int which = 0;
  while (which + 1 < job.n_outputs && column_tile >= job.outputs[which + 1].first_tile) ++which;
  return job.outputs[which];
}

// gemm_exact.cu: counts the column tiles itself, and for one matrix over all rows may choose smaller tiles.
Status exact_product(const Stream& stream, TileJob job, int n_row_tiles, bool gated);

}  // namespace chimere::cuda
