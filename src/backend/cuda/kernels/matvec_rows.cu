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

#include "backend/cuda/kernels/matvec_rows.h"

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

struct Instance {
  Status (*launch)(const Stream&, const RowsLaunch&) = nullptr;
  bool natural = false;
};

template <class F>
Instance instance_of(Status (*launch)(const Stream&, const RowsLaunch&)) {
  return {launch, Quarters<F>::kNatural};
}

Instance find_instance(DType type) {
  if (!has_own_kernels(type)) return {};
  if (type == kIq3Wide) return instance_of<format::IQ3_S_wide>(matvec_rows_iq3_s_wide);
  switch (type) {
    case DType::Q8_0: return instance_of<format::Q8_0>(matvec_rows_q8_0);
    case DType::Q4_0: return instance_of<format::Q4_0>(matvec_rows_q4_0);
    case DType::Q4_1: return instance_of<format::Q4_1>(matvec_rows_q4_1);
    case DType::Q5_0: return instance_of<format::Q5_0>(matvec_rows_q5_0);
    case DType::Q4_K: return instance_of<format::Q4_K>(matvec_rows_q4_k);
    case DType::Q5_K: return instance_of<format::Q5_K>(matvec_rows_q5_k);
    case DType::Q6_K: return instance_of<format::Q6_K>(matvec_rows_q6_k);
    case DType::IQ4_NL: return instance_of<format::IQ4_NL>(matvec_rows_iq4_nl);
    case DType::IQ4_XS: return instance_of<format::IQ4_XS>(matvec_rows_iq4_xs);
    case DType::MXFP4: return instance_of<format::MXFP4>(matvec_rows_mxfp4);
    default: return {};
  }
}

// Rows an odd number of 16-byte pieces apart: the eight rows that a warp reads side by side never meet in a bank.
uint32_t padded_row(uint32_t row_bytes) { return row_bytes / 16 % 2 == 1 ? row_bytes : row_bytes + 16; }

// False where not even `least` slots, or as many as the block has tiles, find room beside passes of so many columns.
bool fit(RowsLaunch& l, int pass_tiles, int least) {
  MatvecPlan& p = l.plan.plan;
  const int column_tiles = simt::div_up(p.args.n_rows, kColumnTile);
  p.n_passes = simt::div_up(column_tiles, pass_tiles);
  l.plan.pass_tiles = simt::div_up(column_tiles, p.n_passes);
  const int parts = min(p.own_tiles, max(1, p.args.n_sms / p.n_passes));
  l.plan.split = UnitSplit(p.own_tiles, parts);
  l.blocks = parts * p.n_passes;

  const int most = l.plan.split.most();
  const auto n = static_cast<uint32_t>(l.plan.pass_tiles);
  const uint32_t acts = n * (row_groups(p.args.in.width) / 2) * kPairBytes, slot = kTileRows * l.plan.stride;
  const uint32_t sums = static_cast<uint32_t>(kTeams) * kTeamWarps * n * 32u * sizeof(float4);
  l.plan.together = most == 1 && p.lanes() > kTeamWarps;
  // Blocks that have but one tile a team put the sums where the activations were.
  const bool once = most <= kTeams;
  const uint32_t before = once ? max(acts, sums) : acts + sums;
  const size_t room = simt::shared_limit() - 1024;
  if (before + static_cast<size_t>(min(least, most)) * slot > room) return false;
  l.plan.n_slots = min(min(most, kMaxSlots), static_cast<int>((room - before) / slot));
  l.plan.sums_at = once ? 0 : acts;
  l.plan.slots_at = before;
  l.shared = before + static_cast<size_t>(l.plan.n_slots) * slot;
  return true;
}

}  // namespace

bool plan_rows(const MatvecPlan& plan, DType own, RowsLaunch& launch) {
  const MatvecArgs& a = plan.args;
  if (a.n_rows < kTensorRows || !a.records || plan.n_own == 0 || plan.lanes() < kTeamWarps ||
      !find_instance(own).launch || !simt::has_bulk_copy()) {
    return false;
  }
  launch.plan.plan = plan;
  number_tiles(launch.plan.plan, kTileRows);
  launch.plan.stride = padded_row(a.outs[0].weight.row_bytes);
  launch.plan.fragments = a.records + static_cast<size_t>(a.n_rows) * record_bytes(a.in.width);
  launch.plan.inverses =
      reinterpret_cast<const float*>(launch.plan.fragments + fragment_rows(a.n_rows) * 40u * row_groups(a.in.width));
  for (const int least : {3, 2}) {
    for (int pass_tiles = kPassTiles; pass_tiles > 0; pass_tiles /= 2) {
      if (fit(launch, pass_tiles, least)) return true;
    }
  }
  return false;
}

Status matvec_rows(const Stream& stream, const RowsLaunch& launch, DType own) {
  const MatvecPlan& p = launch.plan.plan;
  const MatvecArgs& a = p.args;
  bool whole = false;
  for (int i = p.n_own; i < a.n_outs; ++i) whole |= !a.outs[i].weight.is_float();
  const Instance instance = find_instance(own);
  TRY(simt::launch(quantise_fragments_kernel,
                   {static_cast<unsigned>(a.n_rows), kDotThreads, record_bytes(a.in.width), stream, a.dependent}, a.in,
                   instance.natural, launch.plan.pass_tiles, whole ? a.records : nullptr,
                   const_cast<uint8_t*>(launch.plan.fragments), const_cast<float*>(launch.plan.inverses)));
  return instance.launch(stream, launch);
}

}  // namespace chimere::cuda
