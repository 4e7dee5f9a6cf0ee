// adapters.cpp  What low-rank adapters add to a product: y += scale B (A x), each token by those of its request.
//
// Tokens are shared out among the workers, and one worker does all of a token, so that its sums have one order. At rank
// 16 and a width of 4096 that is 0.13 M multiplications a matrix, beside 17 M of the matrix itself.
#include "backend/adapter.h"
#include "backend/cpu/vec.h"
#include "backend/cpu/workspace.h"

namespace chimere::cpu {
namespace {

// Sixteen chains, so that the compiler may use vectors.
float dot(const float* a, const float* b, int64_t n) {
  float sums[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int j = 0; j < 16; ++j) sums[j] += a[i + j] * b[i + j];
  }
  float total = 0;
  for (; i < n; ++i) total += a[i] * b[i];
  for (const float s : sums) total += s;
  return total;
}

const Slice& slice_of(const Batch& batch, int64_t row) {
  size_t s = 0;
  while (row >= batch.slices[s].first_row + batch.slices[s].n_tokens) ++s;
  return batch.slices[s];
}

bool changes(const Context& c, MatrixId matrix) {
  for (const Slice& slice : c.batch.slices) {
    if (!slice.adapters) continue;
    for (const AdapterSet::Use& use : slice.adapters->uses) {
      if (use.adapter->find(matrix)) return true;
    }
  }
  return false;
}

// What the slice's adapters change of one row.
void add_changes(const Context& c, const Slice& slice, MatrixId matrix, const float* x, float* y, float factor) {
  if (!slice.adapters) return;
  const auto in = static_cast<int64_t>(c.program.matrices[matrix].ne[0]);
  const auto out = static_cast<int64_t>(c.program.matrices[matrix].ne[1]);
  for (const AdapterSet::Use& use : slice.adapters->uses) {
    const LowRank* change = use.adapter->find(matrix);
    if (!change) continue;
    for (int r = 0; r < change->rank; ++r) {
      const float h = factor * use.scale * dot(change->a.data() + r * in, x, in);
      vec().multiply_add(static_cast<int>(out), h, change->b.data() + r * out, y);
    }
  }
}

}  // namespace

bool is_adapted(const Context& c) {
  for (const Slice& slice : c.batch.slices) {
    if (slice.adapters) return true;
  }
  return false;
}

void add_adapters(Team& team, const Context& c, MatrixId matrix, RowsView x, RowsView y, float factor) {
  if (!changes(c, matrix)) return;  // every worker comes to the same answer
  team.parallel_for(c.batch.n_rows(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      add_changes(c, slice_of(c.batch, t), matrix, x.data + t * x.row, y.data + t * y.row, factor);
    }
  });
}

void add_head_adapters(Team& team, const Context& c, MatrixId matrix, RowsView x, RowsView y, float factor) {
  if (!changes(c, matrix)) return;
  team.parallel_for(static_cast<int64_t>(c.batch.logit_rows.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Slice& slice = slice_of(c.batch, c.batch.logit_rows[static_cast<size_t>(i)]);
      add_changes(c, slice, matrix, x.data + i * x.row, y.data + i * y.row, factor);
    }
  });
}

}  // namespace chimere::cpu
