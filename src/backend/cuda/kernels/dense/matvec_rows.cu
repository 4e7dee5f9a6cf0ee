// matvec_rows.cu   matvec.cu for 8 to 64 rows on the tensor cores: what is quantised, and what a block is given
// Shapes    as matvec.cu; widths of an even number of groups, and at least eight lanes a row (matvec_rows.h)
// Bytes     the weights once for a pass of up to 32 rows; the blocks of the passes of a tile run side by side, so that
//           the L2 cache serves all but the first. 1.25 bytes per element of a pass's rows and block
// Launch    a block of 16 warps per SM, each over neighbouring tiles of 16 weight rows
// Smem      the activations of a pass (82 KB for 32 rows of 2048), the sums of the warps (4 KB a team and column tile),
//           and as many slots of 16 weight rows as fit, at least two or all that the block has
//           128 registers: a few words of each round live in local memory, none of them in the loop over pairs
// Numerics  the bits of matvec.cu for one row
// Measured  H200, 32 rows with their quantisation: Q5_K [12352, 2048] 27 us, Q5_K [2048, 4096] 13 us, Q6_K
//           [248320, 2048] 427 us (46, 19 and 904 with dp4a and weights in registers)
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/dense/matvec_rows.h"

#include "backend/cuda/kernels/dense/matvec_instances.h"

namespace chimere::cuda {
namespace {

// A block makes the record of its row and writes it as fragments, and whole where `records` says so.
__global__ void __launch_bounds__(kDotThreads)
    quantise_fragments_kernel(InputRows in, bool natural, int pass_tiles, uint8_t* records, uint8_t* fragments,
                              float* inverses) {
  auto* record = simt::dynamic_shared<uint8_t>();
  const NormAhead norms = load_norm(in);
  simt::wait_for_previous();
  simt::allow_next();
  const auto t = static_cast<int>(blockIdx.x);
  const int64_t row = in.gather ? in.gather[t] : t;
  make_record(in, row, true, norms, load_row<2>(in, row), record);
  __syncthreads();
  if (simt::thread_id() == 0) inverses[t] = row_inverse(in, record);

  const uint32_t G = row_groups(in.width), P = G / 2, column = static_cast<uint32_t>(t % kColumnTile);
  const auto tile = static_cast<uint32_t>(t / kColumnTile), tiles = static_cast<uint32_t>(pass_tiles);
  const uint32_t bytes = tiles * kPairBytes;  // of a pair
  uint8_t* to = fragments + tile / tiles * P * bytes + tile % tiles * kPairBytes;
  for (uint32_t i = simt::thread_id(); i < 4u * P; i += kDotThreads) {
    const uint32_t pair = i / 4u, q = i % 4u;
    const auto word = [&](uint32_t half, uint32_t j) {
      const uint32_t piece = (j < 4u ? 0u : G) + place_in_plane(G, 2u * pair + half);
      return *reinterpret_cast<const uint32_t*>(record + 16u * piece + 4u * (j % 4u));
    };
    const uint32_t first = natural ? 2u * q : q, second = natural ? 2u * q + 1u : q + 4u;
    *reinterpret_cast<uint4*>(to + pair * bytes + 16u * (4u * column + q)) =
        make_uint4(word(0, first), word(0, second), word(1, first), word(1, second));
  }
  for (uint32_t pair = simt::thread_id(); pair < P; pair += kDotThreads) {
    *reinterpret_cast<float4*>(to + pair * bytes + kPairScales + 16u * column) =
        *reinterpret_cast<const float4*>(record + 32u * G + 16u * pair);
  }
  if (records) {
    auto* whole = reinterpret_cast<uint4*>(records + static_cast<int64_t>(t) * record_bytes(in.width));
    for (uint32_t i = simt::thread_id(); i < record_rms_offset(in.width) / 16u; i += kDotThreads) {
      whole[i] = reinterpret_cast<const uint4*>(record)[i];
    }
  }
}

}  // namespace

Status matvec_rows(const Stream& stream, const MatvecPlan& plan, const MatvecChoice& choice) {
  const MatvecArgs& a = plan.args;
  RowsPlan rows;
  rows.plan = plan;
  rows.split = UnitSplit(plan.own_tiles, choice.blocks / choice.n_passes);
  rows.fragments = a.records + static_cast<size_t>(a.n_rows) * record_bytes(a.in.width);
  rows.inverses =
      reinterpret_cast<const float*>(rows.fragments + fragment_rows(a.n_rows) * 40u * row_groups(a.in.width));
  rows.pass_tiles = choice.pass_rows / kColumnTile;
  rows.n_slots = choice.n_slots;
  rows.together = choice.together;
  rows.stride = padded_row(a.outs[0].weight.row_bytes);
  rows.slots_at = choice.slots_at;
  rows.sums_at = choice.sums_at;
  const RowsInstance instance = find_in_parts([&](auto part) { return find_matvec_rows<part>(choice.format); });
  bool whole = false;  // rows of other formats read the records
  for (int i = plan.n_own; i < a.n_outs; ++i) whole |= !a.outs[i].weight.is_float();
  TRY(simt::launch(quantise_fragments_kernel,
                   {static_cast<unsigned>(a.n_rows), kDotThreads, record_bytes(a.in.width), stream, a.dependent}, a.in,
                   instance.natural, rows.pass_tiles, whole ? a.records : nullptr, const_cast<uint8_t*>(rows.fragments),
                   const_cast<float*>(rows.inverses)));
  return instance.launch(stream, rows, choice);
}

}  // namespace chimere::cuda
