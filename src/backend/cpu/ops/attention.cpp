#include "backend/cpu/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/ops/hadamard.h"
#include "backend/cpu/ops/kv_rows.h"
#include "backend/cpu/vec.h"

namespace chimere::cpu {
namespace {

constexpr int kSplit = 256;           // tokens whose scores are held at once in the decode class; whole pages
constexpr int kMaxSplits = 64;        // per row; beyond that, splits grow
constexpr int kPrefillQueries = 128;  // query rows that share a converted page
constexpr float kLowest = -std::numeric_limits<float>::infinity();

static_assert(kSplit % kPageTokens == 0);

struct AttentionLayer {
  const VecKernels& vec;
  const op::Attention& op;
  const Context& context;
  KvFormat format;
  const KvKernels& keys;
  const KvKernels& values;
  uint64_t k_row_bytes, v_row_bytes;
  int group;      // query heads per KV head
  int64_t q_row;  // floats of one row's queries of one KV head
  int n_rows;     // of the batch

  const std::byte* k_rows(const Slice& slice, int head, int pos) const {
    return slice.state.kv_pages[pos / kPageTokens] + context.layout.k_offset(op.kv_layer, head) +
           pos % kPageTokens * k_row_bytes;
  }
  const std::byte* v_rows(const Slice& slice, int head, int pos) const {
    return slice.state.kv_pages[pos / kPageTokens] + context.layout.v_offset(op.kv_layer, head) +
           pos % kPageTokens * v_row_bytes;
  }
  float* queries(AttentionScratch& scratch, int kv_head, int row) const {
    return scratch.queries() + (int64_t{kv_head} * n_rows + row) * q_row;
  }
};

// Blocks of prefill rows of a layer.
int rows_per_block(int group) { return std::clamp(kPrefillQueries / group, 16, kPageTokens); }

// Working memory of one worker, in floats; the two classes use it in turn.
size_t worker_floats(const op::Attention& op) {
  const size_t group = static_cast<size_t>(op.n_heads / op.n_kv_heads);
  const size_t decode_queries = group * kDecodeTokens;
  const size_t d = static_cast<size_t>(std::max(op.head_dim_k, op.head_dim_v)) + 16;
  const size_t decode = decode_queries * (kSplit + d + 16);
  const size_t queries = group * rows_per_block(static_cast<int>(group));
  const size_t prefill = 3 * kPageTokens * d + queries * (kPageTokens + d + 16);
  return std::max(decode, prefill) + 64;
}

float* take(float*& memory, int64_t n) {
  float* at = memory;
  memory += (n + 15) / 16 * 16;
  return at;
}

void rotate(const Rope& rope, const float* angles, float* x) {
  const int half = rope.n_rot() / 2;
  const float* cos = angles;
  const float* sin = angles + half;
  const int step = rope.pairing == Rope::Pairing::half ? 1 : 2;
  const int other = rope.pairing == Rope::Pairing::half ? half : 1;
  for (int k = 0; k < half; ++k) {
    const float a = x[k * step];
    const float b = x[k * step + other];
    x[k * step] = a * cos[k] - b * sin[k];
    x[k * step + other] = b * cos[k] + a * sin[k];
  }
}

// Norm, RoPE and rotation of one head: `in` to `out`, then times `scale`.
void prepare_head(const AttentionLayer& layer, const AttentionScratch& scratch, int row, VectorId norm, float scale,
                  const float* in, float* out) {
  const op::Attention& op = layer.op;
  const int d = op.head_dim_k;
  if (norm != kNone) {
    const float s = 1.0f / std::sqrt(layer.vec.sum_squares(d, in) / static_cast<float>(d) + op.eps);
    layer.vec.scale_mul(d, s, in, layer.context.vector(norm), out);
  } else {
    std::memcpy(out, in, static_cast<size_t>(d) * sizeof(float));
  }
  if (op.rope != kNone) rotate(layer.context.program.ropes[op.rope], scratch.angles(op.rope, row), out);
  if (layer.format.rotate) hadamard(d, out);
  if (scale != 1.0f) layer.vec.scale(d, scale, out, out);
}

void prepare_row(const AttentionLayer& layer, AttentionScratch& scratch, const Slice& slice, int row, int kv_head,
                 float* memory) {
  const op::Attention& op = layer.op;
  const int pos = slice.pos + row - slice.first_row;
  if (op.q != kNone) {
    const int64_t head_floats = int64_t{op.head_dim_k} * (op.gated ? 2 : 1);
    const float* q = layer.context.row(op.q, row) + int64_t{kv_head} * layer.group * head_floats;
    float* out = layer.queries(scratch, kv_head, row);
    for (int h = 0; h < layer.group; ++h) {
      prepare_head(layer, scratch, row, op.q_norm, op.scale, q + h * head_floats, out + h * op.head_dim_k);
    }
  }
  const float* k = layer.context.row(op.k, row) + int64_t{kv_head} * op.head_dim_k;
  const float* v = layer.context.row(op.v, row) + int64_t{kv_head} * op.head_dim_v;
  prepare_head(layer, scratch, row, op.k_norm, 1.0f, k, memory);
  encode_kv(layer.format.k, op.head_dim_k, memory, const_cast<std::byte*>(layer.k_rows(slice, kv_head, pos)));
  encode_kv(layer.format.v, op.head_dim_v, v, const_cast<std::byte*>(layer.v_rows(slice, kv_head, pos)));
}

// out = o / sum, gated; `max` is what scores were shifted by.
void finish_head(const AttentionLayer& layer, int row, int head, float max, float sum, const float* o) {
  const op::Attention& op = layer.op;
  if (op.sinks != kNone) sum += std::exp(layer.context.vector(op.sinks)[head] - max);
  float* out = layer.context.row(op.out, row) + int64_t{head} * op.head_dim_v;
  if (op.gated) {
    const float* gate = layer.context.row(op.q, row) + (int64_t{head} * 2 + 1) * op.head_dim_k;
    layer.vec.scale_sigmoid(op.head_dim_v, 1.0f / sum, o, gate, out);
  } else {
    layer.vec.scale(op.head_dim_v, 1.0f / sum, o, out);
  }
}

// Floats of `n` stored rows: in place when they are floats, else converted into `memory`.
const float* as_floats(DType type, int n, int d, const std::byte* rows, float* memory) {
  if (type == DType::F32) return reinterpret_cast<const float*>(rows);
  kv_kernels(type).decode(n * d, rows, memory);
  return memory;
}

// Folds `n` scores into the running softmax of one query: scores become weights, `o` is rescaled.
void fold_scores(const VecKernels& v, int n, float* scores, float& max, float& sum, int d, float* o) {
  const float new_max = std::max(max, v.max(n, scores));
  if (new_max != max) {
    const float keep = std::exp(max - new_max);
    sum *= keep;
    v.scale(d, keep, o, o);
    max = new_max;
  }
  sum += v.exp_sum(n, new_max, scores);
}

// Rows of a slice that are computed together, and the part of their context that they see of one split.
struct DecodeRows {
  int row, n_rows;
  int pos;         // of the first row
  int begin, end;  // tokens
};

void decode_rows(const AttentionLayer& layer, AttentionScratch& scratch, const Slice& slice, const DecodeRows& rows,
                 int split, int kv_head, float* memory) {
  const op::Attention& op = layer.op;
  const int group = layer.group;
  const int n_queries = rows.n_rows * group;
  float* scores = take(memory, int64_t{n_queries} * kSplit);
  float* o = take(memory, int64_t{n_queries} * op.head_dim_v);
  float* max = take(memory, n_queries);
  float* sum = take(memory, n_queries);
  std::fill(o, o + int64_t{n_queries} * op.head_dim_v, 0.0f);
  std::fill(max, max + n_queries, kLowest);
  std::fill(sum, sum + n_queries, 0.0f);
  // Tokens of [from, from + n) that row r sees; the first row sees fewest.
  const auto visible = [&](int r, int from, int n) {
    return op.bidirectional ? n : std::clamp(rows.pos + r + 1 - from, 0, n);
  };
  // Calls work(first row, rows, first token, tokens) for all that is seen of [begin, end), page by page: what every row
  // sees at once, then each row's rest.
  const auto each_part = [&](int begin, int end, const auto& work) {
    for (int at = begin, n = 0; at < end; at += n) {
      n = std::min(kPageTokens - at % kPageTokens, end - at);
      const int common = visible(0, at, n);
      if (common > 0) work(0, rows.n_rows, at, common);
      for (int r = 1; r < rows.n_rows; ++r) {
        const int seen = visible(r, at, n);
        if (seen > common) work(r, 1, at + common, seen - common);
      }
    }
  };

  const float* q = layer.queries(scratch, kv_head, rows.row);
  for (int block = rows.begin; block < rows.end; block += kSplit) {
    const int block_end = std::min(block + kSplit, rows.end);
    each_part(block, block_end, [&](int r, int n_rows, int t, int n) {
      layer.keys.dots(n_rows * group, n, op.head_dim_k, q + r * layer.q_row, layer.k_rows(slice, kv_head, t),
                      layer.k_row_bytes, scores + int64_t{r} * group * kSplit + (t - block), kSplit);
    });
    for (int i = 0; i < n_queries; ++i) {
      const int seen = visible(i / group, block, block_end - block);
      if (seen > 0) {
        fold_scores(layer.vec, seen, scores + int64_t{i} * kSplit, max[i], sum[i], op.head_dim_v,
                    o + int64_t{i} * op.head_dim_v);
      }
    }
    each_part(block, block_end, [&](int r, int n_rows, int t, int n) {
      layer.values.weighted(n_rows * group, n, op.head_dim_v, scores + int64_t{r} * group * kSplit + (t - block),
                            kSplit, layer.v_rows(slice, kv_head, t), layer.v_row_bytes,
                            o + int64_t{r} * group * op.head_dim_v);
    });
  }

  for (int i = 0; i < n_queries; ++i) {
    const int row = rows.row + i / group;
    const int head = kv_head * group + i % group;
    const float* oi = o + int64_t{i} * op.head_dim_v;
    if (!scratch.needs_join()) {
      finish_head(layer, row, head, max[i], sum[i], oi);
    } else if (sum[i] > 0) {  // a later row of the slice may be the first to reach this split
      float* partial = scratch.partial(scratch.partial_of_row(row) + split) + int64_t{head} * (op.head_dim_v + 2);
      partial[0] = max[i];
      partial[1] = sum[i];
      std::memcpy(partial + 2, oi, static_cast<size_t>(op.head_dim_v) * sizeof(float));
    }
  }
}

// The first token that a query at `pos` sees.
int first_seen(const op::Attention& op, int pos) { return op.window > 0 ? std::max(0, pos - op.window + 1) : 0; }

void decode_split(const AttentionLayer& layer, AttentionScratch& scratch, const AttentionScratch::DecodeItem& item,
                  int kv_head, float* memory) {
  const Slice& slice = layer.context.batch.slices[item.slice];
  if (layer.op.window == 0) {
    decode_rows(layer, scratch, slice, {item.row, item.n_rows, item.pos, item.begin, item.end}, item.split, kv_head,
                memory);
    return;
  }
  // Every row has a window of its own, and it is short: row by row.
  for (int r = 0; r < item.n_rows; ++r) {
    const int pos = item.pos + r;
    const int begin = std::max(item.begin, first_seen(layer.op, pos));
    const int end = layer.op.bidirectional ? item.end : std::min(item.end, pos + 1);
    if (begin < end)
      decode_rows(layer, scratch, slice, {item.row + r, 1, pos, begin, end}, item.split, kv_head, memory);
  }
}

void join_splits(const AttentionLayer& layer, AttentionScratch& scratch, const AttentionScratch::DecodeRow& row,
                 int head, float* o) {
  const int d = layer.op.head_dim_v;
  const auto partial = [&](int split) { return scratch.partial(row.partial + split) + int64_t{head} * (d + 2); };
  // Alone it is finished as it is without a join, to the last bit.
  if (row.n_splits == 1) return finish_head(layer, row.row, head, partial(0)[0], partial(0)[1], partial(0) + 2);
  const int first = first_seen(layer.op, row.pos) / row.split_tokens;
  float max = kLowest;
  for (int s = first; s < row.n_splits; ++s) max = std::max(max, partial(s)[0]);
  float sum = 0;
  std::fill(o, o + d, 0.0f);
  for (int s = first; s < row.n_splits; ++s) {
    const float* p = partial(s);
    const float weight = std::exp(p[0] - max);
    sum += weight * p[1];
    layer.vec.multiply_add(d, weight, p + 2, o);
  }
  finish_head(layer, row.row, head, max, sum, o);
}

void prefill_block(const AttentionLayer& layer, AttentionScratch& scratch, const Slice& slice, int first, int n_rows,
                   int kv_head, float* memory) {
  const op::Attention& op = layer.op;
  const int group = layer.group;
  const int n_queries = n_rows * group;
  const int dk = op.head_dim_k;
  const int dv = op.head_dim_v;
  float* keys_t = take(memory, int64_t{kPageTokens} * dk);
  float* scores = take(memory, int64_t{n_queries} * kPageTokens);
  float* o = take(memory, int64_t{n_queries} * dv);
  float* max = take(memory, n_queries);
  float* sum = take(memory, n_queries);
  std::fill(o, o + int64_t{n_queries} * dv, 0.0f);
  std::fill(max, max + n_queries, kLowest);
  std::fill(sum, sum + n_queries, 0.0f);
  const float* q = layer.queries(scratch, kv_head, slice.first_row + first);
  const int pos = slice.pos + first;
  const int end = op.bidirectional ? slice.pos + slice.n_tokens : pos + n_rows;

  for (int page = first_seen(op, pos) / kPageTokens * kPageTokens; page < end; page += kPageTokens) {
    const int n = std::min(kPageTokens, end - page);
    const float* k = as_floats(layer.format.k, n, dk, layer.k_rows(slice, kv_head, page), memory);
    layer.vec.transpose(n, dk, k, dk, keys_t, kPageTokens);
    // Rows before this page see nothing of it.
    const int skip = op.bidirectional ? 0 : std::max(0, page - pos) * group;
    layer.vec.matmul(n_queries - skip, n, dk, q + int64_t{skip} * dk, dk, 1, keys_t, kPageTokens,
                     scores + int64_t{skip} * kPageTokens, kPageTokens, false);
    for (int i = skip; i < n_queries; ++i) {
      float* s = scores + int64_t{i} * kPageTokens;
      const int at = pos + i / group;
      const int unseen = std::clamp(first_seen(op, at) - page, 0, n);
      const int seen = op.bidirectional ? n : std::min(at + 1 - page, n);
      std::fill(s, s + unseen, 0.0f);
      if (unseen < seen) fold_scores(layer.vec, seen - unseen, s + unseen, max[i], sum[i], dv, o + int64_t{i} * dv);
      std::fill(s + seen, s + n, 0.0f);
    }
    const float* v = as_floats(layer.format.v, n, dv, layer.v_rows(slice, kv_head, page), memory);
    layer.vec.matmul(n_queries - skip, dv, n, scores + int64_t{skip} * kPageTokens, kPageTokens, 1, v, dv,
                     o + int64_t{skip} * dv, dv, true);
  }
  for (int i = 0; i < n_queries; ++i) {
    finish_head(layer, slice.first_row + first + i / group, kv_head * group + i % group, max[i], sum[i],
                o + int64_t{i} * dv);
  }
}

}  // namespace

int split_tokens(int pos) {
  int tokens = kSplit;
  while (int64_t{tokens} * kMaxSplits <= pos) tokens *= 2;
  return tokens;
}

void AttentionScratch::reserve(const Program& program, const StateLayout& layout, int max_rows, int n_threads) {
  (void)layout;
  size_t queries = 0;
  size_t floats = 0;
  const auto sees_ahead = [](std::span<const Op> ops) {
    return std::any_of(ops.begin(), ops.end(), [](const Op& any) {
      const op::Attention* op = std::get_if<op::Attention>(&any);
      return op != nullptr && op->bidirectional;
    });
  };
  trunk_sees_ahead_ = sees_ahead(program.trunk());
  drafts_see_ahead_ = sees_ahead(program.draft_pass());
  for (const Op& any : program.ops) {
    const op::Attention* op = std::get_if<op::Attention>(&any);
    if (op == nullptr) continue;
    queries = std::max(queries, static_cast<size_t>(op->n_heads) * op->head_dim_k * max_rows);
    floats = std::max(floats, worker_floats(*op));
    partial_floats_ = std::max(partial_floats_, int64_t{op->n_heads} * (op->head_dim_v + 2));
  }
  queries_.resize(queries);
  rope_floats_.clear();
  angles_.clear();
  for (const Rope& rope : program.ropes) {
    rope_floats_.push_back(rope.n_rot());
    angles_.emplace_back(static_cast<size_t>(rope.n_rot()) * max_rows);
  }
  partial_of_row_.resize(static_cast<size_t>(max_rows));
  decode_rows_.reserve(static_cast<size_t>(max_rows));
  workers_.resize(static_cast<size_t>(n_threads));
  for (Worker& w : workers_) w.memory.resize(floats);
}

void AttentionScratch::begin(const Program& program, const Batch& batch) {
  const bool sees_ahead = batch.is_draft_pass() ? drafts_see_ahead_ : trunk_sees_ahead_;
  decode_items_.clear();
  decode_rows_.clear();
  needs_join_ = false;
  int64_t n_partials = 0;
  for (int s = 0; s < static_cast<int>(batch.slices.size()); ++s) {
    const Slice& slice = batch.slices[s];
    for (size_t r = 0; r < program.ropes.size(); ++r) {
      const Rope& rope = program.ropes[r];
      const size_t half = rope.inv_freq.size();
      for (int t = 0; t < slice.n_tokens; ++t) {
        float* at = angles_[r].data() + (slice.first_row + t) * rope_floats_[r];
        for (size_t k = 0; k < half; ++k) {
          const double angle = static_cast<double>(slice.pos + t) * rope.inv_freq[k];
          at[k] = static_cast<float>(std::cos(angle)) * rope.magnitude;
          at[half + k] = static_cast<float>(std::sin(angle)) * rope.magnitude;
        }
      }
    }
    if (!slice.is_decode()) continue;
    const int slice_end = slice.pos + slice.n_tokens;
    // The last position that a row sees.
    const auto last_seen = [&](int pos) { return sees_ahead ? slice_end - 1 : pos; };
    for (int t = 0; t < slice.n_tokens;) {
      const int pos = slice.pos + t;
      const int tokens = split_tokens(last_seen(pos));
      int n = 1;
      while (t + n < slice.n_tokens && split_tokens(last_seen(pos + n)) == tokens) ++n;
      const int end = last_seen(pos + n - 1) + 1;
      for (int split = 0; split * tokens < end; ++split) {
        decode_items_.push_back(
            {s, slice.first_row + t, n, pos, split, split * tokens, std::min((split + 1) * tokens, end)});
      }
      for (int i = 0; i < n; ++i) {
        const int n_splits = last_seen(pos + i) / tokens + 1;
        decode_rows_.push_back({slice.first_row + t + i, pos + i, tokens, n_splits, n_partials});
        partial_of_row_[slice.first_row + t + i] = n_partials;
        n_partials += n_splits;
        needs_join_ = needs_join_ || n_splits > 1;
      }
      t += n;
    }
  }
  const size_t floats = static_cast<size_t>(n_partials * partial_floats_);
  if (needs_join_ && partials_.size() < floats) partials_.resize(floats + floats / 2);
}

uint64_t AttentionScratch::size_bytes() const {
  uint64_t floats = queries_.size() + partials_.size();
  for (const AlignedFloats& a : angles_) floats += a.size();
  for (const Worker& w : workers_) floats += w.memory.size();
  return floats * sizeof(float);
}

void attention(Team& team, const Context& context, const op::Attention& op, AttentionScratch& scratch) {
  const StateLayout& layout = context.layout;
  const int group = op.n_heads / op.n_kv_heads;
  const AttentionLayer layer{vec(),
                             op,
                             context,
                             layout.format(),
                             kv_kernels(layout.format().k),
                             kv_kernels(layout.format().v),
                             layout.k_row_bytes(op.kv_layer),
                             layout.v_row_bytes(op.kv_layer),
                             group,
                             int64_t{group} * op.head_dim_k,
                             context.batch.n_rows()};
  const std::vector<Slice>& slices = context.batch.slices;
  float* memory = scratch.worker(team.rank()).memory.data();

  const int64_t n_prepare = int64_t{layer.n_rows} * op.n_kv_heads;
  team.parallel_for(n_prepare, layer.n_rows > kDecodeTokens ? 8 : 1, [&](int64_t begin, int64_t end) {
    size_t s = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int row = static_cast<int>(i / op.n_kv_heads);
      while (row >= slices[s].first_row + slices[s].n_tokens) ++s;
      prepare_row(layer, scratch, slices[s], row, static_cast<int>(i % op.n_kv_heads), memory);
    }
  });

  if (op.q == kNone) return;

  // Later blocks of a slice see more context: they start first, so that the short ones fill the end.
  const int block_rows = rows_per_block(group);
  const auto blocks_of = [&](const Slice& s) { return s.is_decode() ? 0 : (s.n_tokens + block_rows - 1) / block_rows; };
  int64_t n_blocks = 0;
  for (const Slice& s : slices) n_blocks += blocks_of(s);
  const int64_t n_prefill = n_blocks * op.n_kv_heads;
  const int64_t n_decode = static_cast<int64_t>(scratch.decode_items().size()) * op.n_kv_heads;
  team.parallel_for(n_prefill + n_decode, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int kv_head = static_cast<int>(i % op.n_kv_heads);
      if (i >= n_prefill) {
        decode_split(layer, scratch, scratch.decode_items()[(i - n_prefill) / op.n_kv_heads], kv_head, memory);
        continue;
      }
      int block = static_cast<int>(i / op.n_kv_heads);
      size_t s = 0;
      while (block >= blocks_of(slices[s])) block -= blocks_of(slices[s++]);
      const int first = (blocks_of(slices[s]) - 1 - block) * block_rows;
      prefill_block(layer, scratch, slices[s], first, std::min(block_rows, slices[s].n_tokens - first), kv_head,
                    memory);
    }
  });
  if (!scratch.needs_join()) return;

  const int64_t n_join = static_cast<int64_t>(scratch.decode_rows().size()) * op.n_heads;
  team.parallel_for(n_join, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      join_splits(layer, scratch, scratch.decode_rows()[i / op.n_heads], static_cast<int>(i % op.n_heads), memory);
    }
  });
}

}  // namespace chimere::cpu
