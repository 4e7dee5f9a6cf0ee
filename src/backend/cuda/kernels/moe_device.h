// moe_device.h  The templates of the expert kernels, apart so that their instances can be compiled side by side.
//
// A row's bits do not depend on the other rows: a product of an expert row with a row of activations is one sum over
// the lanes in the order of its width, and the experts' shares are added in the order of the row's choices.
#pragma once

#include "backend/cuda/simt/simt.h"

#include <type_traits>

#include "backend/cuda/kernels/dot_device.h"
#include "backend/cuda/kernels/matvec.h"
#include "backend/cuda/kernels/matvec_device.h"
#include "backend/cuda/kernels/moe.h"
#include "backend/cuda/kernels/router_device.h"

namespace chimere::cuda {

struct MoePlan {
  MoeArgs args;
  MoeScratch scratch;
  bool made_in = false;  // records were made by quantise_rows
  bool made_hidden = false;
  int hidden_width = 0;  // of a row of scratch.hidden
  int shared_at = 0;     // where the shared expert's elements begin in it
  // Of the lanes that share a row, a pair of groups each in the kernels of a format, a group each elsewhere.
  int log2_in = 5, log2_hidden = 5, log2_shared = 5;
  int any_log2_in = 5, any_log2_hidden = 5, any_log2_shared = 5;
  bool choice_in_up = false;  // of one row: the router leaves logits, every warp chooses
};
inline constexpr int kChoiceInUp = 256;  // experts at most

// A float as an unsigned number of the same order; never 0, which marks what was taken.
__device__ __forceinline__ uint32_t order_key(float v) {
  const uint32_t bits = __float_as_uint(v + 0.0f);  // -0 is 0
  return max(bits & 0x80000000u ? ~bits : bits | 0x80000000u, 1u);
}

// The n_used best of up to 32 kKeys logits, by one warp: take(k, id, key) on every lane, the best first, of equals the
// one with the lower id. kFresh: other blocks of the same kernel wrote them; else thousands of warps read them, and
// only the first-level caches can serve so many readers of so few lines.
template <int kKeys, bool kFresh, class Take>
__device__ __forceinline__ void choose_among(const ExpertScores& scores, const float* logits, int n_experts, int n_used,
                                             const Take& take) {
  const int lane = simt::lane_id();
  uint32_t keys[kKeys];
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    const int e = i * 32 + lane;
    keys[i] = e < n_experts ? order_key(scores.key(e, load_logit<kFresh>(logits + e))) : 0u;
  }
  for (int k = 0; k < n_used; ++k) {
    uint32_t best = 0, where = 0;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      where = keys[i] > best ? static_cast<uint32_t>(i * 32 + lane) : where;
      best = max(best, keys[i]);
    }
    const uint32_t top = __reduce_max_sync(simt::kAllLanes, best);
    const uint32_t id = __reduce_min_sync(simt::kAllLanes, best == top ? where : 0xFFFFFFFFu);
#pragma unroll
    for (int i = 0; i < kKeys; ++i) keys[i] = static_cast<uint32_t>(i * 32 + lane) == id ? 0u : keys[i];
    const uint32_t bits = top & 0x80000000u ? top ^ 0x80000000u : ~top;
    take(k, static_cast<int32_t>(id), __uint_as_float(bits));
  }
}

// The choice of row t: ids and weights where the experts look for them. By one warp. Lane k has the id of choice k,
// and of choice k + 32 nobody.
template <int kKeys, bool kFresh>
__device__ __forceinline__ int32_t choose(const MoePlan& p, int t, bool store, int32_t* shared_ids) {
  const int n_experts = p.args.router.rows, n_used = p.args.n_used, lane = simt::lane_id();
  const float* logits = p.scratch.logits + static_cast<int64_t>(t) * (n_experts + 1);
  float* weights = p.scratch.weights + t * (n_used + 1);
  int32_t mine = 0;
  ExpertScores scores{p.args.style};
  scores.look_at_all<kFresh>(logits, n_experts);
  float sum = 0;
  const auto take = [&](int k, int32_t id, float key) {
    if (lane == k) mine = id;
    if (shared_ids && lane == 0) shared_ids[t * n_used + k] = id;
    if (!store) return;
    const float logit = scores.is_by_logit() ? key : load_logit<kFresh>(logits + id);
    if (k == 0) scores.see_best(logit);
    const float weight = scores.score(logit);
    sum += weight;
    if (lane == 0) {
      p.scratch.ids[t * n_used + k] = id;
      weights[k] = weight;
    }
  };
  choose_among<kKeys, kFresh>(scores, logits, n_experts, n_used, take);
  if (!store) return mine;
  __syncwarp();
  const float by = scores.weight_factor(sum) * p.args.scale;
  for (int k = lane; k < n_used; k += 32) weights[k] *= by;
  if (lane == 0) {
    const float shared = p.args.shared_router ? 1.0f / (1.0f + expf(-__ldcg(logits + n_experts))) : 1.0f;
    weights[n_used] = shared * p.args.scale;
  }
  return mine;
}

// A lane's share of the product with one row of activations, of any kind.
__device__ __forceinline__ float any_product(const Weight& w, const uint8_t* row, bool exact, int lanes,
                                             const ActRows& acts, const FloatRows& rows) {
  if (w.is_float()) return float_dot(w.type, row, w.width, rows, 1).x;
  if (exact) return exact_dot(w.type, row, row_groups(w.width), w.grids, rows, 1).x;
  return any_dot(w.type, row, row_groups(w.width), lanes, w.grids, acts, 1).x;
}
__device__ __forceinline__ int any_lanes(const Weight& w, bool exact, int log2) {
  return w.is_float() || exact ? 32 : 1 << log2;
}

// What a warp of the up kernel works on at a time: rows f .. of one expert for up to kMoeChunk rows of activations.
// A chunk of rows has `tiles` units, and units are counted through; a warp takes every stride-th.
struct ChunkUnits {
  int chunk, tile;  // of the unit
  int chunk_stride, tile_stride;
  int tiles;

  __device__ __forceinline__ ChunkUnits(int unit, int stride, int tiles)
      : chunk(unit / tiles),
        tile(unit % tiles),
        chunk_stride(stride / tiles),
        tile_stride(stride % tiles),
        tiles(tiles) {}
  __device__ __forceinline__ void advance() {
    chunk += chunk_stride;
    tile += tile_stride;
    if (tile >= tiles) {
      tile -= tiles;
      ++chunk;
    }
  }
};

struct UpChunk {
  int expert;
  int count;
  int pair[kMoeChunk];  // row of the activations << 16 | choice
};

// `chosen`: of one row, the lane's id of choose().
template <int kT>
__device__ __forceinline__ UpChunk routed_chunk(const MoePlan& p, int at, int32_t chosen) {
  UpChunk u;
  if (kT == 1 && p.choice_in_up) {
    u.expert = __shfl_sync(simt::kAllLanes, chosen, at);
    u.count = 1;
    u.pair[0] = at;
    return u;
  }
  const MoeChunk chunk = p.scratch.chunks[at];
  u.expert = chunk.expert;
  u.count = chunk.count;
#pragma unroll
  for (int i = 0; i < kT; ++i) u.pair[i] = p.scratch.pairs[chunk.first + min(i, chunk.count - 1)];
  return u;
}

template <int kT>
__device__ __forceinline__ UpChunk shared_chunk(const MoePlan& p, int at) {
  UpChunk u;
  u.expert = 0;
  u.count = min(kMoeChunk, p.args.n_rows - at * kMoeChunk);
#pragma unroll
  for (int i = 0; i < kT; ++i) {
    const int row = at * kMoeChunk + min(i, u.count - 1);
    u.pair[i] = row << 16;
  }
  return u;
}

// Where the hidden elements of a pair go.
__device__ __forceinline__ float* hidden_row(const MoePlan& p, float* hidden, int pair, int d_ff) {
  return hidden + static_cast<int64_t>(pair >> 16) * p.hidden_width + (pair & 0xFFFF) * d_ff;
}

// Of element f of a routed expert.
__device__ __forceinline__ void add_up_biases(const MoePlan& p, int expert, int f, float& gate, float& up) {
  const int64_t at = static_cast<int64_t>(expert) * p.args.up.rows + f;
  if (p.args.gate_bias) gate += p.args.gate_bias[at];
  if (p.args.up_bias) up += p.args.up_bias[at];
}

// Of output `row` of the activations' row t, behind the weighted sum of the experts.
__device__ __forceinline__ float add_down_biases(const MoePlan& p, int t, int row, const float* weights, float sum) {
  if (!p.args.down_bias) return sum;
  const int32_t* ids = p.scratch.ids + t * p.args.n_used;
  for (int k = 0; k < p.args.n_used; ++k) {
    sum = fmaf(weights[k], p.args.down_bias[static_cast<int64_t>(ids[k]) * p.args.down.rows + row], sum);
  }
  return sum;
}

// Units of n chunks, from `unit` on, of a type without kernel: `locate` says what a chunk is.
template <class Locate>
__device__ __forceinline__ void any_up(const MoePlan& p, const Weight& gate, const Weight& up, int unit, int n,
                                       int stride, const uint8_t* records, float* hidden, bool is_routed,
                                       Locate locate) {
  const int lanes_up = any_lanes(up, p.args.exact, p.any_log2_in);
  const int lanes_gate = gate ? any_lanes(gate, p.args.exact, p.any_log2_in) : lanes_up;
  const int lanes = max(lanes_gate, lanes_up);  // rows of mixed kinds are taken one at a time
  const int per_tile = lanes_gate == lanes_up ? 32 / lanes : 1;
  const uint32_t bytes = record_bytes(up.width);
  for (ChunkUnits at(unit, stride, simt::div_up(up.rows, per_tile)); at.chunk < n; at.advance()) {
    const UpChunk u = locate(at.chunk);
    const int f = at.tile * per_tile + (per_tile == 1 ? 0 : simt::lane_id() / lanes);
    const int row = min(f, up.rows - 1);
#pragma unroll
    for (int i = 0; i < kMoeChunk; ++i) {
      if (i >= u.count) break;
      FloatRows rows{};
      rows.x[0] = p.args.in.x + static_cast<int64_t>((u.pair[i] >> 16)) * up.width;
      const uint8_t* record = records + (u.pair[i] >> 16) * bytes;
      rows.inverse_rms[0] = stored_inverse(record, up.width);
      rows.norm = p.args.in.norm;
      const ActRows acts{record, bytes, row_groups(up.width), 0};
      const auto product = [&](const Weight& w, int lanes_of) {
        const float sum = lane_sum(any_product(w, w.row(u.expert, row), p.args.exact, lanes_of, acts, rows), lanes_of);
        return p.args.exact || w.is_float() ? sum : sum * rows.inverse_rms[0];
      };
      float g = gate ? product(gate, lanes_gate) : 0.0f, h = product(up, lanes_up);
      if (simt::lane_id() % lanes != 0 || f >= up.rows) continue;
      if (is_routed) add_up_biases(p, u.expert, f, g, h);
      hidden_row(p, hidden, u.pair[i], up.rows)[f] = activated(p.args.activation, g, h);
    }
  }
}

// Asks the second-level cache for n bytes, by one warp.
__device__ __forceinline__ void prefetch_run(const uint8_t* from, uint32_t n) {
  for (uint32_t i = 128u * simt::lane_id(); i < n; i += 128u * 32u) simt::prefetch_l2(from + i);
}

// The same for a type with a kernel, both matrices of it, kT rows of activations at most. The first weights travel,
// from start() on, while the activations are prepared. Where there is no gate, two neighbouring rows of the one matrix
// stand for gate and up: element f is then a pair of hidden elements.
template <class F, int kT, bool kShared>
struct OwnUp {
  using Raws = Pair<F>[2];

  const MoePlan& p;
  const Weight& gate;
  const Weight& up;
  const uint32_t G;
  const int lanes, steps, n;
  const uint32_t first_pair;
  const int32_t chosen;
  const uint16_t* experts;  // of the chunks, in shared memory; of many rows
  ChunkUnits at;
  UpChunk u;
  const uint8_t *gate_row, *up_row;
  Raws raw;
  int f, step = 0;
  float acc[kT * 2] = {};  // [row of activations][gate, up]

  __device__ __forceinline__ OwnUp(const MoePlan& p, int unit, int n, int stride, int32_t chosen,
                                   const uint16_t* experts)
      : p(p),
        gate(kShared ? p.args.shared_gate : p.args.gate),
        up(kShared ? p.args.shared_up : p.args.up),
        G(row_groups(up.width)),
        lanes(1 << p.log2_in),
        steps((static_cast<int>(G / 2) + lanes - 1) >> p.log2_in),
        n(n),
        first_pair(static_cast<uint32_t>(simt::lane_id() & (lanes - 1))),
        chosen(chosen),
        experts(experts),
        at(unit, stride, (n_elements() + (32 >> p.log2_in) - 1) >> (5 - p.log2_in)) {}

  // log2 of the rows of one matrix in an element. Asked anew each time: the answer is a constant of the launch, and
  // registers are short.
  __device__ __forceinline__ int by_twos() const { return gate ? 0 : 1; }
  __device__ __forceinline__ int n_elements() const { return up.rows >> by_twos(); }

  __device__ __forceinline__ int row_of_tile() const {
    return (at.tile << (5 - p.log2_in)) + (simt::lane_id() >> p.log2_in);
  }
  __device__ __forceinline__ UpChunk locate() {
    const UpChunk chunk = kShared ? shared_chunk<kT>(p, at.chunk) : routed_chunk<kT>(p, at.chunk, chosen);
    const int64_t row =
        static_cast<int64_t>(chunk.expert) * up.rows + (min(row_of_tile(), n_elements() - 1) << by_twos());
    up_row = up.data + row * up.row_bytes;
    gate_row = gate ? gate.data + row * up.row_bytes : up_row + up.row_bytes;
    return chunk;
  }
  __device__ __forceinline__ void load(uint32_t pair) {
    raw[0] = F::load_pair(gate_row, G, min(pair, G / 2 - 1));
    raw[1] = F::load_pair(up_row, G, min(pair, G / 2 - 1));
  }

  __device__ __forceinline__ void start() {
    if (at.chunk >= n) return;
    u = locate();
    load(first_pair);
    f = row_of_tile();
    // Of rows that take several steps the others come from the second-level cache.
    if (!kShared && steps > 1) ask_for(at, u.expert);
    if (kT == 1) ask_ahead();
  }

  __device__ __forceinline__ void ask_for(const ChunkUnits& which, int expert) const {
    const int per_tile = 32 >> p.log2_in, first = which.tile * per_tile;
    const auto bytes = static_cast<uint32_t>(min(per_tile, n_elements() - first)) * up.row_bytes;
    if (gate) prefetch_run(gate.row(expert, first), bytes);
    prefetch_run(up.row(expert, first << by_twos()), bytes << by_twos());
  }

  // Sends for the unit after that of `at`: a warp's registers hold too little to keep the memory busy.
  __device__ __forceinline__ void ask_ahead() const {
    if (kShared) return;  // all of it was asked for long ago
    ChunkUnits next = at;
    next.advance();
    if (next.chunk >= n) return;
    const int expert = kT == 1 && p.choice_in_up ? __shfl_sync(simt::kAllLanes, chosen, next.chunk)
                       : kT == 1                 ? p.scratch.chunks[next.chunk].expert
                                                 : experts[next.chunk];
    ask_for(next, expert);
  }

  // Element f of pair i of chunk u.
  __device__ __forceinline__ void put(const UpChunk& u, int i, int f, float of_gate, float of_up, float* hidden) const {
    float* to = hidden_row(p, hidden, u.pair[i], up.rows);
    if (by_twos()) {
      float none = 0;
      if (!kShared) add_up_biases(p, u.expert, 2 * f, none, of_up);
      if (!kShared) add_up_biases(p, u.expert, 2 * f + 1, none, of_gate);
      to[2 * f] = activated(p.args.activation, none, of_up);
      to[2 * f + 1] = activated(p.args.activation, none, of_gate);
      return;
    }
    if (!kShared) add_up_biases(p, u.expert, f, of_gate, of_up);
    to[f] = activated(p.args.activation, of_gate, of_up);
  }

  // Of rows f of chunk u. one_inverse: 1 / rms of the row when there is but one.
  __device__ __forceinline__ void store(const UpChunk& u, int f, const uint8_t* records, float one_inverse,
                                        float* hidden) {
    const auto inverse = [&](int i) {
      if (kT == 1) return one_inverse;
      return stored_inverse(records + (u.pair[i] >> 16) * record_bytes(up.width), up.width);
    };
    if (lanes >= 16) {
      float of_gate = 0, of_up = 0;  // where the lane has a sum of gate
      if (lanes == 32) {
        scatter_sums<32>(acc);
        of_gate = acc[0], of_up = __shfl_down_sync(simt::kAllLanes, acc[0], 16 / kT);
      } else {
        scatter_sums<16>(acc);
        of_gate = acc[0], of_up = __shfl_down_sync(simt::kAllLanes, acc[0], 8 / kT);
      }
#pragma unroll
      for (int i = 0; i < kT; ++i) {
        if (static_cast<int>(first_pair) == lanes / kT * i && i < u.count && f < n_elements()) {
          const float by = inverse(i);
          put(u, i, f, of_gate * by, of_up * by, hidden);
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < kT; ++i) {
        if (i >= u.count) break;
        const float by = inverse(i);
        const float g_sum = lane_sum(acc[2 * i], lanes) * by, h_sum = lane_sum(acc[2 * i + 1], lanes) * by;
        if (first_pair == 0 && f < n_elements()) put(u, i, f, g_sum, h_sum, hidden);
      }
    }
  }

  __device__ __forceinline__ void run(const CodeBooks& books, const uint8_t* records, float one_inverse) {
    if (at.chunk >= n) return;
    if (kT > 1) ask_ahead();
    float* hidden = p.scratch.hidden + (kShared ? p.shared_at : 0);
    for (bool more = true; more;) {
      const auto pair = static_cast<uint32_t>(step << p.log2_in) + first_pair;
      const auto add_half = [&](auto half) {
        Group w[2];
        F::unpack(raw[0].of[half], books, w[0]);
        F::unpack(raw[1].of[half], books, w[1]);
#pragma unroll
        for (int i = 0; i < kT; ++i) {
          if (i >= u.count) break;
          const ActGroup x = load_act_half<half>(records + (u.pair[i] >> 16) * record_bytes(up.width), G, pair);
          acc[2 * i] = add_group<F::kScales, F::kMins>(w[0], x, acc[2 * i]);
          acc[2 * i + 1] = add_group<F::kScales, F::kMins>(w[1], x, acc[2 * i + 1]);
        }
      };
      if (pair < G / 2) {
        add_half(std::integral_constant<int, 0>{});
        add_half(std::integral_constant<int, 1>{});
      }
      if (++step < steps) {
        load(pair + static_cast<uint32_t>(lanes));
        continue;
      }
      // The next unit's weights travel while this one's sums are finished.
      const UpChunk done = u;
      const int done_f = f;
      at.advance();
      step = 0;
      more = at.chunk < n;
      if (more) {
        u = locate();
        load(first_pair);
        f = row_of_tile();
        ask_ahead();
      }
      store(done, done_f, records, one_inverse, hidden);
#pragma unroll
      for (float& a : acc) a = 0;
    }
  }
};

// Asks for a share of a matrix that does not depend on the choice of experts, before the choice is known.
__device__ __forceinline__ void prefetch(const Weight& w) {
  if (!w) return;
  const int64_t bytes = static_cast<int64_t>(w.rows) * w.row_bytes;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kDotThreads * 128;
  for (int64_t at = (static_cast<int64_t>(blockIdx.x) * kDotThreads + simt::thread_id()) * 128; at < bytes;
       at += stride) {
    simt::prefetch_l2(w.data + at);
  }
}

// Blocks a multiprocessor: as many as the registers of the work allow without spilling much.
CHIMERE_BOTH constexpr int moe_blocks(int n_acts) { return n_acts == 1 ? 3 : 2; }

// F: of the routed experts; S: of the shared one; kT: 1 or kMoeChunk.
template <class F, class S, int kT>
__global__ void __launch_bounds__(kDotThreads, moe_blocks(kT)) moe_up_kernel(const __grid_constant__ MoePlan p) {
  SIMT_SHARED(uint16_t, experts, (kT == 1 ? 1 : kMoePairs));  // of the chunks
  auto* shared = simt::dynamic_shared<uint8_t>();
  CodeBooks books;
  uint32_t used = 0;
  if constexpr (!std::is_same_v<F, NoFormat>) {
    books = open_books<F>(p.args.up.grids, shared);
    used = book_bytes<F>();
  }
  prefetch(p.args.shared_gate);
  prefetch(p.args.shared_up);
  const NormAhead norms = load_norm(p.args.in);
  const int stride = static_cast<int>(gridDim.x) * kDotWarps;
  const int warp = static_cast<int>(blockIdx.x) * kDotWarps + simt::warp_id();
  simt::wait_for_previous();
  simt::allow_next();

  // Of one row, each choice is a chunk, and every warp chooses for itself: nobody waits for the last block of the
  // router to do it.
  RowAhead<2> row;
  if constexpr (kT == 1) row = load_row<2>(p.args.in, 0);
  int32_t chosen = 0;
  if (kT == 1 && p.choice_in_up) chosen = choose<kChoiceInUp / 32, false>(p, 0, warp == 0, nullptr);
  const int n_chunks = kT == 1 ? p.args.n_used : *p.scratch.n_chunks;
  if (kT > 1) {
    for (int i = simt::thread_id(); i < n_chunks; i += kDotThreads) {
      experts[i] = static_cast<uint16_t>(p.scratch.chunks[i].expert);
    }
  }
  const uint8_t* records = p.scratch.in_records;
  float one_inverse = 1.0f;
  const auto stage = [&] {
    const bool quantise = !p.args.exact && row_groups(p.args.in.width) > 0;
    if constexpr (kT == 1) {
      one_inverse = stage_one(p.args.in, 0, norms, row, quantise, shared + used);
      records = shared + used;
      if (std::is_same_v<F, NoFormat> || std::is_same_v<S, NoFormat>) {
        if (simt::thread_id() == 0) stored_inverse(records, p.args.in.width) = one_inverse;
        __syncthreads();
      }
    } else if (!p.made_in) {
      stage_records(p.args.in, norms, nullptr, 0, p.args.n_rows, quantise, shared + used);
      records = shared + used;
    } else {
      __syncthreads();
    }
  };
  if constexpr (std::is_same_v<F, NoFormat>) {
    stage();
    constexpr int kTaken = kT == 1 ? 1 : kMoeChunk;
    any_up(p, p.args.gate, p.args.up, warp, n_chunks, stride, records, p.scratch.hidden, true,
           [&](int at) { return routed_chunk<kTaken>(p, at, chosen); });
  } else {
    OwnUp<F, kT, false> routed(p, warp, n_chunks, stride, chosen, experts);
    routed.start();
    stage();
    routed.run(books, records, one_inverse);
  }
  if (!p.args.shared_up) return;
  const int n_shared = simt::div_up(p.args.n_rows, kMoeChunk);
  // The last warps first: they had the fewest routed units.
  const int from_end = stride - 1 - warp;
  if constexpr (std::is_same_v<S, NoFormat>) {
    any_up(p, p.args.shared_gate, p.args.shared_up, from_end, n_shared, stride, records, p.scratch.hidden + p.shared_at,
           false, [&p](int at) { return shared_chunk<kMoeChunk>(p, at); });
  } else {
    OwnUp<S, kT, true> of_shared(p, from_end, n_shared, stride, 0, nullptr);
    of_shared.start();
    of_shared.run(books, records, one_inverse);
  }
}

// acc + the product of a pair of groups with those of pair `at` of a record.
template <class F>
__device__ __forceinline__ float add_pair(const Pair<F>& raw, const CodeBooks& books, const uint8_t* record, uint32_t G,
                                          uint32_t at, float acc) {
  Group w;
  F::unpack(raw.of[0], books, w);
  acc = add_group<F::kScales, F::kMins>(w, load_act_half<0>(record, G, at), acc);
  F::unpack(raw.of[1], books, w);
  return add_group<F::kScales, F::kMins>(w, load_act_half<1>(record, G, at), acc);
}

// The weighted sum of the routed experts' outputs `row` for activations row t. start() sends for the first weights.
template <class F>
struct OwnDown {
  static constexpr int kDepth = 2;  // pairs of groups of a lane in flight

  const MoePlan& p;
  const Weight& down;
  const uint32_t G;
  const int lanes, at_once, steps;
  const int mine;  // of the choices that the warp takes at once
  const uint32_t first_pair;
  Pair<F> raw[kDepth];
  const uint8_t* rows;
  const int32_t* ids;
  int load_k, load_step;  // first choice of the warp and step of its row that are loaded next

  __device__ __forceinline__ explicit OwnDown(const MoePlan& p)
      : p(p),
        down(p.args.down),
        G(row_groups(down.width)),
        lanes(1 << p.log2_hidden),
        at_once(32 >> p.log2_hidden),
        steps((static_cast<int>(G / 2) + lanes - 1) >> p.log2_hidden),
        mine(simt::lane_id() >> p.log2_hidden),
        first_pair(static_cast<uint32_t>(simt::lane_id() & (lanes - 1))) {}

  __device__ __forceinline__ void fill() {
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      if (load_k >= p.args.n_used) break;
      const int expert = ids[min(load_k + mine, p.args.n_used - 1)];
      const uint32_t pair = static_cast<uint32_t>(load_step << p.log2_hidden) + first_pair;
      raw[d] =
          F::load_pair(rows + expert * (static_cast<int64_t>(down.rows) * down.row_bytes), G, min(pair, G / 2 - 1));
      if (++load_step == steps) {
        load_step = 0;
        load_k += at_once;
      }
    }
  }
  __device__ __forceinline__ void start(int row, int t) {
    rows = down.row(0, row);
    ids = p.scratch.ids + t * p.args.n_used;
    load_k = load_step = 0;
    fill();
    // The rest of what does not fit into registers is sent for too.
    if (load_k >= p.args.n_used) return;
    const uint32_t lines = (down.row_bytes + 127u) / 128u;
    for (uint32_t i = simt::lane_id(); i < p.args.n_used * lines; i += 32u) {
      simt::prefetch_l2(down.row(ids[i / lines], row) + i % lines * 128u);
    }
  }

  __device__ __forceinline__ float finish(const CodeBooks& books, const uint8_t* record, const float* weights) {
    const int n_used = p.args.n_used;
    const uint32_t all = row_groups(p.hidden_width);
    float sum = 0, acc = 0;
    int k = 0, step = 0;
    while (k < n_used) {
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
        if (k >= n_used) break;
        const uint32_t pair = static_cast<uint32_t>(step << p.log2_hidden) + first_pair;
        if (pair < G / 2 && k + mine < n_used) {
          acc = add_pair<F>(raw[d], books, record, all, (k + mine) * (G / 2) + pair, acc);
        }
        if (++step < steps) continue;
        const float whole = lane_sum(acc, lanes);
        acc = 0;
        step = 0;
        for (int i = 0; i < at_once; ++i, ++k) {
          const float y = at_once == 1 ? whole : __shfl_sync(simt::kAllLanes, whole, i << p.log2_hidden);
          if (k < n_used) sum = fmaf(weights[k], y, sum);
        }
      }
      if (k < n_used) fill();
    }
    return sum;
  }
};

// One output of one expert of any type, to every lane: lanes beyond those of the row repeat them.
__device__ __forceinline__ float any_down(const MoePlan& p, const Weight& down, int expert, int row,
                                          const ActRows& acts, int log2, const float* hidden) {
  FloatRows rows{};
  rows.x[0] = hidden;
  const int lanes = any_lanes(down, p.args.exact, log2);
  return lane_sum(any_product(down, down.row(expert, row), p.args.exact, lanes, acts, rows), lanes);
}

// One output of the shared expert. Its first weights can be sent for before anything else is known.
template <class S>
struct SharedDown {
  const MoePlan& p;
  Pair<S> ahead;

  __device__ __forceinline__ explicit SharedDown(const MoePlan& p) : p(p) {}
  __device__ __forceinline__ int lanes() const { return 1 << p.log2_shared; }

  __device__ __forceinline__ void start(int row) {
    const Weight& down = p.args.shared_down;
    const uint32_t G = row_groups(down.width);
    const auto pair = static_cast<uint32_t>(simt::lane_id() & (lanes() - 1));
    ahead = S::load_pair(down.row(0, row), G, min(pair, G / 2 - 1));
  }
  __device__ __forceinline__ float finish(const CodeBooks& books, int row, int, const uint8_t* record) const {
    const Weight& down = p.args.shared_down;
    const uint32_t G = row_groups(down.width), all = row_groups(p.hidden_width), first = p.shared_at / kGroup / 2;
    const auto first_pair = static_cast<uint32_t>(simt::lane_id() & (lanes() - 1));
    float acc = 0;
    for (uint32_t pair = first_pair; pair < G / 2; pair += lanes()) {
      const Pair<S> raw = pair == first_pair ? ahead : S::load_pair(down.row(0, row), G, pair);
      acc = add_pair<S>(raw, books, record, all, first + pair, acc);
    }
    return lane_sum(acc, lanes());
  }
};

template <>
struct SharedDown<NoFormat> {
  const MoePlan& p;

  __device__ __forceinline__ explicit SharedDown(const MoePlan& p) : p(p) {}
  __device__ __forceinline__ void start(int) {}
  __device__ __forceinline__ float finish(const CodeBooks&, int row, int t, const uint8_t* record) const {
    return any_down(p, p.args.shared_down, 0, row,
                    {record, 0, row_groups(p.hidden_width), static_cast<uint32_t>(p.shared_at / kGroup)},
                    p.any_log2_shared, p.scratch.hidden + static_cast<int64_t>(t) * p.hidden_width + p.shared_at);
  }
};

// Of the weights of the choices, in shared memory.
CHIMERE_BOTH constexpr uint32_t weights_bytes(int n_rows, int n_used) {
  return round_up_16(static_cast<uint32_t>(n_rows * (n_used + 1)) * 4u);
}

template <class F, class S>
__global__ void __launch_bounds__(kDotThreads, moe_blocks(1)) moe_down_kernel(const __grid_constant__ MoePlan p) {
  auto* shared = simt::dynamic_shared<uint8_t>();
  CodeBooks books;
  uint32_t used = 0;
  if constexpr (!std::is_same_v<F, NoFormat>) {
    books = open_books<F>(p.args.down.grids, shared);
    used = book_bytes<F>();
  }
  prefetch(p.args.shared_down);
  const int n_used = p.args.n_used, n_rows = p.args.n_rows, end = p.args.down.rows * n_rows;
  const int stride = static_cast<int>(gridDim.x) * kDotWarps;
  const auto row_of = [&](int unit) { return n_rows == 1 ? unit : unit / n_rows; };
  int unit = static_cast<int>(blockIdx.x) * kDotWarps + simt::warp_id();
  SharedDown<S> of_shared(p);
  if (p.args.shared_down && unit < end) of_shared.start(row_of(unit));
  simt::wait_for_previous();
  simt::allow_next();

  const auto with_routed = [&](auto&& begin, auto&& finish) {
    const InputRows hidden{p.scratch.hidden, nullptr, 0, p.hidden_width};
    const bool makes = !std::is_same_v<F, NoFormat> || !p.made_hidden;
    RowAhead<5> first_row;
    if (makes) first_row = load_row<5>(hidden, 0);
    if (unit < end) begin(row_of(unit), unit - row_of(unit) * n_rows);
    const uint32_t bytes = record_bytes(p.hidden_width);
    const uint8_t* records = p.scratch.hidden_records;
    auto* weights = reinterpret_cast<float*>(shared + used);  // [n_rows, n_used + 1]
    for (int i = simt::thread_id(); i < n_rows * (n_used + 1); i += kDotThreads) weights[i] = p.scratch.weights[i];
    if (makes) {
      uint8_t* to = shared + used + weights_bytes(n_rows, n_used);
      for (int t = 0; t < n_rows; ++t) {
        make_record(hidden, t, !p.args.exact, {}, t == 0 ? first_row : load_row<5>(hidden, t), to + t * bytes);
      }
      records = to;
    }
    __syncthreads();
    for (; unit < end; unit += stride) {
      // Rows of the batch that chose the same expert read the same weights at about the same time.
      const int row = row_of(unit), t = unit - row * n_rows, next = unit + stride;
      const uint8_t* record = records + t * bytes;
      float* to = p.args.residual + static_cast<int64_t>(t) * p.args.down.rows + row;
      const float before = simt::lane_id() == 0 ? *to : 0.0f;
      float sum = finish(row, t, record, weights + t * (n_used + 1));
      sum = add_down_biases(p, t, row, weights + t * (n_used + 1), sum);
      if (next < end) begin(row_of(next), next - row_of(next) * n_rows);
      if (p.args.shared_down) {
        sum = fmaf(weights[t * (n_used + 1) + n_used], of_shared.finish(books, row, t, record), sum);
        if (next < end) of_shared.start(row_of(next));
      }
      if (simt::lane_id() == 0) *to = before + sum;
    }
  };
  if constexpr (std::is_same_v<F, NoFormat>) {
    with_routed([](int, int) {},
                [&](int row, int t, const uint8_t* record, const float* weights) {
                  const Weight& down = p.args.down;
                  const uint32_t G = row_groups(down.width), all = row_groups(p.hidden_width);
                  float sum = 0;
                  for (int k = 0; k < n_used; ++k) {
                    const float* hidden = hidden_row(p, p.scratch.hidden, t << 16 | k, down.width);
                    const float y = any_down(p, down, p.scratch.ids[t * n_used + k], row, {record, 0, all, k * G},
                                             p.any_log2_hidden, hidden);
                    sum = fmaf(weights[k], y, sum);
                  }
                  return sum;
                });
  } else {
    OwnDown<F> routed(p);
    with_routed(
        [&](int row, int t) { routed.start(row, t); },
        [&](int, int, const uint8_t* record, const float* weights) { return routed.finish(books, record, weights); });
  }
}

// Many rows: the products of each expert with all rows that chose it, to be added up by add_experts. kR rows a lane.
// `experts`: of the chunks.
template <class F, int kR>
__device__ __forceinline__ void grouped_down(const MoePlan& p, const CodeBooks& books, const uint16_t* experts,
                                             int unit, int stride) {
  const Weight& down = p.args.down;
  const int n_used = p.args.n_used, lanes = 1 << p.log2_hidden, per_tile = kR * (32 >> p.log2_hidden);
  const uint32_t G = row_groups(down.width), all = row_groups(p.hidden_width), bytes = record_bytes(p.hidden_width);
  const int n = *p.scratch.n_chunks;
  const auto first_pair = static_cast<uint32_t>(simt::lane_id() & (lanes - 1));
  constexpr int kAhead = 2;  // units that are sent for before they are needed
  ChunkUnits ahead(unit, stride, simt::div_up(down.rows, per_tile));
  const auto ask_ahead = [&] {
    if (ahead.chunk < n) {
      const int from = ahead.tile * per_tile;
      prefetch_run(down.row(experts[ahead.chunk], from),
                   static_cast<uint32_t>(min(per_tile, down.rows - from)) * down.row_bytes);
    }
    ahead.advance();
  };
  for (int i = 0; i < kAhead; ++i) ask_ahead();
  for (ChunkUnits at(unit, stride, simt::div_up(down.rows, per_tile)); at.chunk < n; at.advance()) {
    ask_ahead();
    const MoeChunk chunk = p.scratch.chunks[at.chunk];
    const int first = at.tile * per_tile + (simt::lane_id() >> p.log2_hidden);
    const uint8_t* row[kR];
#pragma unroll
    for (int r = 0; r < kR; ++r) {
      row[r] = down.row(chunk.expert, min(first + (r << (5 - p.log2_hidden)), down.rows - 1));
    }
    const uint8_t* record[kMoeChunk];
    uint32_t group[kMoeChunk];  // first pair of the choice
    int pair[kMoeChunk];
#pragma unroll
    for (int i = 0; i < kMoeChunk; ++i) {
      const int packed = p.scratch.pairs[chunk.first + min(i, chunk.count - 1)];
      pair[i] = (packed >> 16) * n_used + (packed & 0xFFFF);
      record[i] = p.scratch.hidden_records + static_cast<int64_t>(packed >> 16) * bytes;
      group[i] = static_cast<uint32_t>(packed & 0xFFFF) * (G / 2);
    }
    float acc[kMoeChunk * kR] = {};  // [pair][row]
    for (uint32_t at_pair = first_pair; at_pair < G / 2; at_pair += lanes) {
      Pair<F> raw[kR];
#pragma unroll
      for (int r = 0; r < kR; ++r) raw[r] = F::load_pair(row[r], G, at_pair);
      const auto add_half = [&](auto half) {
        Group w[kR];
#pragma unroll
        for (int r = 0; r < kR; ++r) F::unpack(raw[r].of[half], books, w[r]);
#pragma unroll
        for (int i = 0; i < kMoeChunk; ++i) {
          if (i >= chunk.count) break;
          const ActGroup x = load_act_half<half>(record[i], all, group[i] + at_pair);
#pragma unroll
          for (int r = 0; r < kR; ++r) acc[i * kR + r] = add_group<F::kScales, F::kMins>(w[r], x, acc[i * kR + r]);
        }
      };
      add_half(std::integral_constant<int, 0>{});
      add_half(std::integral_constant<int, 1>{});
    }
    finish_sums(acc, lanes, [&](int j, float sum) {
      const int i = j / kR, o = first + ((j % kR) << (5 - p.log2_hidden));
      if (i >= chunk.count || o >= down.rows) return;
      int to = pair[0];
#pragma unroll
      for (int c = 1; c < kMoeChunk; ++c) to = i == c ? pair[c] : to;
      p.scratch.outputs[static_cast<int64_t>(to) * down.rows + o] = sum;
    });
  }
}

template <class F, class S>
__global__ void __launch_bounds__(kDotThreads, moe_blocks(kMoeChunk))
    moe_grouped_down_kernel(const __grid_constant__ MoePlan p) {
  SIMT_SHARED(uint16_t, experts, kMoePairs);
  const CodeBooks books = open_books<F>(p.args.down.grids, simt::dynamic_shared<uint8_t>());
  prefetch(p.args.shared_down);
  simt::wait_for_previous();
  simt::allow_next();
  for (int i = simt::thread_id(); i < *p.scratch.n_chunks; i += kDotThreads) {
    experts[i] = static_cast<uint16_t>(p.scratch.chunks[i].expert);
  }
  __syncthreads();
  const int stride = static_cast<int>(gridDim.x) * kDotWarps;
  const int warp = static_cast<int>(blockIdx.x) * kDotWarps + simt::warp_id();
  grouped_down<F, 4>(p, books, experts, warp, stride);
  if (!p.args.shared_down) return;
  SharedDown<S> of_shared(p);
  for (int unit = stride - 1 - warp; unit < p.args.down.rows * p.args.n_rows; unit += stride) {
    const int row = unit / p.args.n_rows, t = unit - row * p.args.n_rows;
    of_shared.start(row);
    const uint8_t* record = p.scratch.hidden_records + static_cast<int64_t>(t) * record_bytes(p.hidden_width);
    const float y = of_shared.finish(books, row, t, record);
    if (simt::lane_id() == 0) p.scratch.shared_outputs[static_cast<int64_t>(t) * p.args.down.rows + row] = y;
  }
}

template <class F>
CHIMERE_BOTH constexpr uint32_t moe_book_bytes() {
  if constexpr (std::is_same_v<F, NoFormat>) {
    return 0;
  } else {
    return book_bytes<F>();
  }
}

template <class F, class S>
Status launch_moe_up(const Stream& stream, const MoePlan& p) {
  const MoeArgs& a = p.args;
  const size_t shared = moe_book_bytes<F>() + (p.made_in ? 0 : size_t{record_bytes(a.in.width)} * a.n_rows);
  const simt::Launch at{static_cast<unsigned>(moe_blocks(a.n_rows) * a.n_sms), kDotThreads, shared, stream,
                        a.dependent};
  return a.n_rows == 1 ? simt::launch(moe_up_kernel<F, S, 1>, at, p)
                       : simt::launch(moe_up_kernel<F, S, kMoeChunk>, at, p);
}

// residual += the weighted outputs that moe_grouped_down_kernel left.
Status launch_add_experts(const Stream& stream, const MoePlan& p);

template <class F, class S>
Status launch_moe_down(const Stream& stream, const MoePlan& p) {
  const MoeArgs& a = p.args;
  size_t shared = moe_book_bytes<F>();
  if constexpr (!std::is_same_v<F, NoFormat>) {
    if (p.made_hidden) {
      TRY(simt::launch(
          moe_grouped_down_kernel<F, S>,
          {static_cast<unsigned>(moe_blocks(kMoeChunk) * a.n_sms), kDotThreads, shared, stream, a.dependent}, p));
      return launch_add_experts(stream, p);
    }
  }
  shared += weights_bytes(a.n_rows, a.n_used);
  if (!p.made_hidden) shared += size_t{record_bytes(p.hidden_width)} * a.n_rows;
  const int units = simt::div_up(a.down.rows * a.n_rows, kDotWarps);
  const int blocks = min(units, moe_blocks(1) * a.n_sms);
  return simt::launch(moe_down_kernel<F, S>, {static_cast<unsigned>(blocks), kDotThreads, shared, stream, a.dependent},
                      p);
}

}  // namespace chimere::cuda
