// half_tiles.h  Tiles of halves in shared memory, and the fragments that tensor cores read from them.
//
// A tile is [rows][D] halves; the 16-byte chunks of a row are permuted by chunk ^ (row % 8), so that ldmatrix, which
// reads the same chunk of eight rows, hits eight different groups of banks.
#pragma once

#include <cstring>

#include "backend/cuda/simt/simt.h"

namespace chimere::cuda::half_tiles {

// Byte offset of a chunk of eight halves.
template <int D>
__device__ __forceinline__ int tile_offset(int row, int chunk) {
  return row * D * 2 + ((chunk ^ (row & 7)) << 4);
}

__device__ __forceinline__ uint32_t pack_halves(float x, float y) {
  const __half2 h = __floats2half2_rn(x, y);
  uint32_t bits;
  memcpy(&bits, &h, sizeof(bits));
  return bits;
}

// The 16 x 16 fragment of rows row .. row + 16 and halves 16 step .. 16 step + 16.
template <int D>
__device__ __forceinline__ void load_a(uint32_t (&a)[4], const std::byte* tile, int row, int step, int lane) {
  simt::ldmatrix_x4(a, tile + tile_offset<D>(row + lane % 16, 2 * step + lane / 16));
}

// Where rows of the tile are columns of b: b of the first eight of 16 rows from `row` on, then of the next: [2][2].
template <int D>
__device__ __forceinline__ void load_b(uint32_t (&b)[4], const std::byte* tile, int row, int step, int lane) {
  const int m = lane / 8;
  simt::ldmatrix_x4(b, tile + tile_offset<D>(row + m / 2 * 8 + lane % 8, 2 * step + m % 2));
}

// Where rows of the tile are rows of b: for 16 of them, b of columns 8 chunk .. 8 chunk + 8, then of the next: [2][2].
template <int D>
__device__ __forceinline__ void load_b_transposed(uint32_t (&b)[4], const std::byte* tile, int row, int chunk,
                                                  int lane) {
  const int m = lane / 8;
  simt::ldmatrix_x4_trans(b, tile + tile_offset<D>(row + m % 2 * 8 + lane % 8, chunk + m / 2));
}

// d += a b for two neighbouring blocks of eight columns.
__device__ __forceinline__ void mma_pair(float (&first)[4], float (&second)[4], const uint32_t (&a)[4],
                                         const uint32_t (&b)[4]) {
  const uint32_t b0[2] = {b[0], b[1]}, b1[2] = {b[2], b[3]};
  simt::mma_f16(first, a, b0);
  simt::mma_f16(second, a, b1);
}

}  // namespace chimere::cuda::half_tiles
