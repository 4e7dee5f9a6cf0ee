// attention_decode_heads.h  What the projections left for a split: prepared, stored in the cache, packed into tiles.
//
// A thread block does this for its own split: no launch of its own, and in f16 no way through the card's memory for
// keys and values that the block is about to read.
#pragma once

#include "backend/cuda/kernels/attention/attention_decode_tiles.h"
#include "backend/cuda/kernels/attention/attention_heads.h"

namespace chimere::cuda::attention_detail {

// Queries that a tile of kQueryRows does not have are zeros: their scores are computed and not used.
template <int D>
__device__ __forceinline__ void clear_missing_queries(std::byte* queries, int n_rows, int tid) {
#pragma unroll 1
  for (int i = n_rows * (D / 8) + tid; i < kQueryRows * D / 8; i += kThreads) {
    reinterpret_cast<uint4*>(queries)[i] = make_uint4(0, 0, 0, 0);
  }
}

// The heads that a split needs of the previous kernel, as items of which a warp takes every kWarps-th: keys, then
// values of the new tokens in the split; then, if `n_queries` is not 0, the queries.
template <int D, bool kHalves>
struct SplitHeads {
  static constexpr int kPerLane = D / 32;
  const AttentionArgs& p;
  const DeviceSlice& slice;
  const SplitTiles<D, kHalves>& tiles;
  const QueryRows& rows;
  int kv_head;
  int first_new, n_new;  // tokens of the slice in the split
  int n_items;

  __device__ __forceinline__ SplitHeads(const AttentionArgs& args, const DeviceSlice& of,
                                        const SplitTiles<D, kHalves>& split, const QueryRows& queries, int head,
                                        int split_begin, bool prepared, int n_queries)
      : p(args), slice(of), tiles(split), rows(queries), kv_head(head) {
    first_new = split_begin > slice.pos ? split_begin - slice.pos : 0;
    n_new = tiles.end - slice.pos > first_new ? tiles.end - slice.pos - first_new : 0;
    n_items = 2 * n_new + (prepared ? 0 : n_queries);
  }

  __device__ __forceinline__ HeadKind kind(int item) const {
    return item < n_new ? HeadKind::key : item < 2 * n_new ? HeadKind::value : HeadKind::query;
  }
  // The token of the slice that an item belongs to.
  __device__ __forceinline__ int token(int item, HeadKind of_item) const {
    const int r = item - 2 * n_new;  // of a query
    return of_item == HeadKind::query ? rows.place[r].x : first_new + (item < n_new ? item : item - n_new);
  }
  // Where the projections left an item.
  __device__ __forceinline__ const float* source(int item) const {
    if (item < n_new) return key(p, slice.first_row + first_new + item, kv_head);
    if (item < 2 * n_new) {
      return p.v + (slice.first_row + first_new + item - n_new) * p.v_stride + int64_t{kv_head} * D;
    }
    const int2 place = rows.place[item - 2 * n_new];
    return query(p, slice.first_row + place.x, place.y);
  }

  // Prepares a warp's items, in `head`, and puts them where they belong. An item is loaded while the one before it is
  // prepared; `next` is the first, loaded already.
  __device__ __forceinline__ void prepare(const HeadPreparation<D>& preparation, float (&next)[kPerLane],
                                          std::byte* first_page, float* head, int warp, int lane) const {
#pragma unroll 1
    for (int item = warp; item < n_items; item += kWarps) {
      float x[kPerLane];
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) x[i] = next[i];
      if (item + kWarps < n_items) preparation.load(source(item + kWarps), lane, next);
      const HeadKind of_item = kind(item);
      const int t = token(item, of_item);
      preparation.run(p, of_item, x, t, head, lane);
      put(item, of_item, t, first_page, head, lane);
      __syncwarp();
    }
  }

 private:
  // A prepared head to its place: a query to the tile of queries; a key or value of token t to the cache and, in f16,
  // to the split's first tile too. `first_page` is that tile's page, known already.
  __device__ __forceinline__ void put(int item, HeadKind of_item, int t, std::byte* first_page, const float* head,
                                      int lane) const {
    const int pos = slice.pos + t;
    const bool is_query = of_item == HeadKind::query, is_key = of_item == HeadKind::key;
    std::byte* row = nullptr;  // in the cache
    if (!is_query) {
      std::byte* page = pos / kPageTokens == tiles.begin / kPageTokens ? first_page : slice.kv_pages[pos / kPageTokens];
      row = page + (is_key ? tiles.k_at : tiles.v_at) + pos % kPageTokens * (is_key ? p.k_row_bytes : p.v_row_bytes);
    }
    const DType type = is_key ? p.k_type : p.v_type;
    if (kHalves || is_query || type == DType::F16) {
      if (lane < D / 8) {
        const float scale = is_query ? p.scale * kLog2E : 1.0f;  // scores come out as powers of two
        const uint4 packed = pack_eight(head, lane, scale);
        std::byte* tile = is_query ? tiles.shared : is_key ? tiles.k_stage(0) : tiles.v_stage(0);
        const int at = is_query ? item - 2 * n_new : pos - tiles.begin;
        if (at >= 0 && at < kPageTokens) *reinterpret_cast<uint4*>(tile + tile_offset<D>(at, lane)) = packed;
        if (!is_query) *reinterpret_cast<uint4*>(row + lane * 16) = packed;
      }
    } else {
      store_row(type, head, row, D, lane);
    }
  }
  __device__ static __forceinline__ uint4 pack_eight(const float* head, int lane, float scale) {
    using half_tiles::pack_halves;
    const float4 x0 = reinterpret_cast<const float4*>(head)[lane * 2];
    const float4 x1 = reinterpret_cast<const float4*>(head)[lane * 2 + 1];
    return make_uint4(pack_halves(x0.x * scale, x0.y * scale), pack_halves(x0.z * scale, x0.w * scale),
                      pack_halves(x1.x * scale, x1.y * scale), pack_halves(x1.z * scale, x1.w * scale));
  }
};

}  // namespace chimere::cuda::attention_detail
