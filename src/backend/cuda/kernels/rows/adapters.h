// adapters.h  What low-rank adapters add to the products of a pass: y += scale B (A x), for each row with the adapters
// of its request.
//
// Rows with the same adapters are grouped into tiles, so that a tile reads A and B once. Rows, adapters and scales are
// read on the device: a captured graph stays valid when requests change theirs.
#pragma once

#include <cstdint>

#include "backend/cuda/kernels/common/activations.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

inline constexpr int kAdapterRows = 8;     // of a tile
inline constexpr int kAdapterRanks = 8;    // that a block multiplies at a time: an adapter's ranks are padded to them
inline constexpr int kAdapterWindow = 64;  // ranks between the two products: more of them go through one after another
inline constexpr int kMaxAdapted = 8;      // products of one launch

CHIMERE_BOTH constexpr int padded_rank(int rank) { return (rank + kAdapterRanks - 1) / kAdapterRanks * kAdapterRanks; }

// The change of one matrix, as LowRank has it.
struct DeviceChange {
  const float* a;  // [rank][in]
  const float* b;  // [rank][out]
  int32_t rank;    // 0: the matrix is left alone
  int32_t reserved;
};

struct AdapterUse {
  const DeviceChange* changes;  // by MatrixId
  float scale;
  int32_t reserved;
};

struct AdapterTile {
  int32_t n_rows;  // 0: nothing to do
  int32_t first_use, n_uses;
  int32_t reserved;
  int32_t rows[kAdapterRows];
};

struct AdapterView {
  const AdapterTile* tiles = nullptr;  // [n_tiles]
  const AdapterUse* uses = nullptr;
  int n_tiles = 0;
  int tile_rows = 0;     // the most that a tile has: 1 or kAdapterRows
  int max_rank = 0;      // bounds the padded ranks of a tile's uses together
  float* low = nullptr;  // [kMaxAdapted][n_tiles][kAdapterRows][kAdapterWindow], A x between the two products

  bool operator==(const AdapterView& o) const {
    return tiles == o.tiles && uses == o.uses && n_tiles == o.n_tiles && tile_rows == o.tile_rows &&
           max_rank == o.max_rank && low == o.low;
  }
};

struct AdaptedProduct {
  int32_t matrix = 0;  // MatrixId
  float* out = nullptr;
  int out_width = 0;
  int pitch = 0;  // of out, in floats
  float factor = 1;
};

// out_i[r] += factor_i scale B_i (A_i n_r) for the rows r in [first_row, first_row + n_rows) that have adapters; n_r as
// InputRows says. `in` and `out` begin at first_row. REQUIRES: no gather; 1 <= n_products <= kMaxAdapted.
struct AddAdaptersArgs {
  AdapterView view;
  InputRows in;
  int first_row = 0;
  int n_rows = 0;
  int n_products = 0;
  AdaptedProduct products[kMaxAdapted];
  bool dependent = false;
};
Status add_adapters(const Stream& stream, const AddAdaptersArgs& args);

// up = activation(gate, up) of n values; relu2 has no gate.
Status activate(const Stream& stream, op::Activation activation, const float* gate, float* up, int64_t n);

}  // namespace chimere::cuda
