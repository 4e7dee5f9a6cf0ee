// attention_test.cpp  The attention kernels against the oracle.
#include "backend/cuda/kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cuda/kernels/common/kernel_test.h"
#include "backend/reference/reference.h"
#include "tensor/quantize.h"

namespace chimere::cuda {
namespace {

struct Shape {
  int n_heads, n_kv_heads, dk, dv;
  bool gated, norm;
  int n_rot;  // 0: no rope
  bool adjacent;
  bool sinks = false;
  int window = 0;
  bool bidirectional = false;
};

struct SliceOf {
  int sequence, n_tokens;
};

// One layer (the second of two, so that offsets matter), sequences with pages, and the same inputs for both backends.
struct Fixture {
  Fixture(const Shape& s, KvFormat format, int n_sequences, int max_tokens, bool exact_) : shape(s), exact(exact_) {
    program.buffers = {{"q", s.n_heads * s.dk * (s.gated ? 2 : 1)},
                       {"k", s.n_kv_heads * s.dk},
                       {"v", s.n_kv_heads * s.dv},
                       {"out", s.n_heads * s.dv}};
    program.vectors = {random(s.dk, 1.0f), random(s.dk, 1.0f), random(s.n_heads, 2.0f)};
    Rope rope;
    rope.pairing = s.adjacent ? Rope::Pairing::adjacent : Rope::Pairing::half;
    for (int i = 0; i < s.n_rot / 2; ++i) rope.inv_freq.push_back(std::pow(1000.0f, -2.0f * i / s.n_rot));
    rope.magnitude = 1.1f;
    program.ropes = {rope};
    op.q = 0, op.k = 1, op.v = 2, op.out = 3;
    op.n_heads = s.n_heads, op.n_kv_heads = s.n_kv_heads, op.head_dim_k = s.dk, op.head_dim_v = s.dv;
    op.gated = s.gated;
    if (s.norm) op.q_norm = 0, op.k_norm = 1;
    if (s.sinks) op.sinks = 2;
    op.window = s.window;
    op.bidirectional = s.bidirectional;
    op.eps = 1e-5f;
    op.rope = s.n_rot > 0 ? 0 : kNone;
    op.scale = 1.0f / std::sqrt(static_cast<float>(s.dk));
    op.kv_layer = 1;
    program.kv_layers = {{s.n_kv_heads, s.dk, s.dv}, {s.n_kv_heads, s.dk, s.dv}};
    auto made = StateLayout::create(program.kv_layers, {}, format);
    layout = std::make_unique<StateLayout>(std::move(*made));
    positions.assign(n_sequences, 0);
    const int n_pages = (max_tokens + kPageTokens - 1) / kPageTokens;
    for (auto* side : {&want, &got}) {
      side->resize(n_sequences);
      for (Sequence& seq : *side) {
        for (int i = 0; i < n_pages; ++i) {
          // What nobody wrote is not a number in any format.
          const size_t bytes = layout->page_bytes();
          seq.memory.emplace_back(new (std::align_val_t{64}) std::byte[bytes]);
          std::memset(seq.memory.back().get(), 0xFF, bytes);
          seq.pages.push_back(seq.memory.back().get());
        }
      }
    }
  }

  std::vector<float> random(int64_t n, float size) {
    std::vector<float> v(static_cast<size_t>(n));
    std::normal_distribution<float> normal(0.0f, size);
    for (float& x : v) x = normal(rng);
    return v;
  }
  std::vector<std::vector<float>> inputs(int n_rows) {
    std::vector<std::vector<float>> in;
    for (const Buffer& b : program.buffers) in.push_back(random(int64_t{n_rows} * b.width, 1.0f));
    return in;
  }

  AttentionArgs args() {
    AttentionArgs a;
    a.n_heads = shape.n_heads, a.n_kv_heads = shape.n_kv_heads, a.head_dim_k = shape.dk, a.head_dim_v = shape.dv;
    a.gated = shape.gated;
    if (shape.norm) a.q_norm = program.vectors[0].data(), a.k_norm = program.vectors[1].data();
    if (shape.sinks) a.sinks = program.vectors[2].data();
    a.window = shape.window;
    a.bidirectional = shape.bidirectional;
    a.eps = op.eps;
    if (shape.n_rot > 0) a.inv_freq = program.ropes[0].inv_freq.data(), a.n_rot = shape.n_rot;
    a.rope_magnitude = program.ropes[0].magnitude;
    a.rope_adjacent = shape.adjacent;
    a.scale = op.scale;
    a.k_type = layout->format().k, a.v_type = layout->format().v, a.rotate = layout->format().rotate;
    a.k_offset = layout->k_offset(1, 0), a.v_offset = layout->v_offset(1, 0);
    a.k_row_bytes = layout->k_row_bytes(1), a.v_row_bytes = layout->v_row_bytes(1);
    a.exact = exact;
    return a;
  }

  // Outputs of the device and, where `expected` is given, of the oracle.
  std::vector<float> run(const std::vector<SliceOf>& slices, const std::vector<std::vector<float>>& in,
                         std::vector<float>* expected = nullptr) {
    Batch batch;
    std::vector<DeviceSlice> device;
    std::vector<int32_t> row_slice, row_pos;
    int decode_rows = 0, max_tokens = 0, max_kv = 0;
    for (size_t i = 0; i < slices.size(); ++i) {
      const SliceOf& s = slices[i];
      Slice slice;
      slice.state.kv_pages = want[s.sequence].pages.data();
      slice.pos = positions[s.sequence], slice.n_tokens = s.n_tokens, slice.first_row = batch.n_rows();
      batch.slices.push_back(slice);
      device.push_back({got[s.sequence].pages.data(), nullptr, nullptr, slice.pos, s.n_tokens, slice.first_row, 0});
      for (int t = 0; t < s.n_tokens; ++t) {
        batch.tokens.push_back(0);
        row_slice.push_back(static_cast<int>(i));
        row_pos.push_back(slice.pos + t);
      }
      positions[s.sequence] += s.n_tokens;
      if (slice.is_decode()) {
        decode_rows += s.n_tokens;
        max_tokens = std::max(max_tokens, s.n_tokens);
        max_kv = std::max(max_kv, positions[s.sequence]);
      }
    }
    const int n_rows = batch.n_rows();
    AttentionArgs a = args();
    a.batch = {
        nullptr, device.data(), row_slice.data(), row_pos.data(), nullptr, n_rows, static_cast<int>(device.size()), 0};
    a.q = in[0].data(), a.q_stride = program.buffers[0].width;
    a.k = in[1].data(), a.k_stride = program.buffers[1].width;
    a.v = in[2].data(), a.v_stride = program.buffers[2].width;
    std::vector<float> out(static_cast<size_t>(n_rows) * program.buffers[3].width, NAN);
    a.out = out.data(), a.out_stride = program.buffers[3].width;
    a.max_decode_rows = decode_rows;
    a.max_decode_tokens = std::max(max_tokens, 1);
    a.max_decode_kv = told_kv > 0 ? told_kv : max_kv;
    a.has_decode = decode_rows > 0;
    a.has_prefill = decode_rows < n_rows;
    const size_t floats = static_cast<size_t>(attention_scratch_floats(a, n_rows, decode_rows));
    std::vector<float> scratch(floats, NAN);
    a.scratch = scratch.data();
    std::vector<int32_t> arrivals(static_cast<size_t>(attention_arrivals(a, static_cast<int>(slices.size()))), 0);
    a.arrivals = arrivals.data();
    Status status = attention(stream, a);
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_TRUE(stream.synchronize());
    EXPECT_EQ(std::count(arrivals.begin(), arrivals.end(), 0), static_cast<int64_t>(arrivals.size()));
    if (expected != nullptr) {
      std::vector<std::vector<float>> buffers = in;
      const reference::Context c{program, *layout, batch, buffers, Outputs{}};
      reference::run(c, op);
      *expected = buffers[3];
    }
    return out;
  }

  // Random rows as the past of sequence 0, the same for the device and the oracle.
  void store_past(const std::vector<std::vector<float>>& in, int n_tokens) {
    for (int pos = 0; pos < n_tokens; ++pos) {
      for (int h = 0; h < shape.n_kv_heads; ++h) {
        for (auto* side : {&want, &got}) {
          std::byte* page = (*side)[0].pages[pos / kPageTokens];
          const int at = pos % kPageTokens;
          quantize_row(layout->format().k, in[1].data() + int64_t{pos} * program.buffers[1].width + h * shape.dk,
                       page + layout->k_offset(1, h) + at * layout->k_row_bytes(1), shape.dk);
          quantize_row(layout->format().v, in[2].data() + int64_t{pos} * program.buffers[2].width + h * shape.dv,
                       page + layout->v_offset(1, h) + at * layout->v_row_bytes(1), shape.dv);
        }
      }
    }
    positions[0] = n_tokens;
  }

  struct Free {
    void operator()(std::byte* p) const { operator delete[](p, std::align_val_t{64}); }
  };
  struct Sequence {
    std::vector<std::unique_ptr<std::byte[], Free>> memory;
    std::vector<std::byte*> pages;
  };
  Stream stream = test_stream();
  std::mt19937 rng{23};
  Shape shape;
  bool exact;
  int told_kv = 0;  // positions that the launcher is told of, where not those that there are
  Program program;
  op::Attention op{};
  std::unique_ptr<StateLayout> layout;
  std::vector<Sequence> want, got;
  std::vector<int> positions;
};

double relative_error(const std::vector<float>& got, const std::vector<float>& want) {
  double worst = 0, squares = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double diff = std::fabs(double{got[i]} - want[i]);
    worst = std::isnan(diff) ? 1e9 : std::max(worst, diff);
    squares += double{want[i]} * want[i];
  }
  return worst / std::sqrt(squares / static_cast<double>(want.size()) + 1e-30);
}

// The stored rows: bits where only rounding is at stake, else a share of bytes that may differ by one step.
void expect_same_pages(const Fixture& f, int sequence) {
  int64_t different = 0, bytes = 0;
  for (size_t i = 0; i < f.want[sequence].pages.size(); ++i) {
    for (size_t b = 0; b < f.layout->page_bytes(); ++b) {
      different += f.want[sequence].pages[i][b] != f.got[sequence].pages[i][b];
    }
    bytes += static_cast<int64_t>(f.layout->page_bytes());
  }
  const bool floats = f.layout->format().k == DType::F32;
  EXPECT_LT(different, bytes * (floats ? 0.5 : 0.02));
}

int total(const std::vector<SliceOf>& slices) {
  int n = 0;
  for (const SliceOf& s : slices) n += s.n_tokens;
  return n;
}

void expect_matches(const Shape& shape, KvFormat format, const std::vector<std::vector<SliceOf>>& batches,
                    int n_sequences, int max_tokens, bool exact, double tolerance) {
  on_both_schedules([&] {
    Fixture f(shape, format, n_sequences, max_tokens, exact);
    for (const std::vector<SliceOf>& slices : batches) {
      std::vector<float> want;
      const std::vector<float> got = f.run(slices, f.inputs(total(slices)), &want);
      EXPECT_LT(relative_error(got, want), tolerance)
          << name(format.k) << " " << name(format.v) << " dk " << shape.dk << " first slice " << slices[0].n_tokens;
    }
    for (int i = 0; i < n_sequences; ++i) expect_same_pages(f, i);
  });
}

TEST(CudaAttention, ExactMatchesReference) {
  const std::vector<std::vector<SliceOf>> batches = {{{0, 70}, {1, 3}}, {{1, 1}, {0, 2}}, {{1, 64}, {0, 1}}};
  expect_matches({4, 2, 48, 48, true, true, 24, false}, {DType::F32, DType::F32, false}, batches, 2, 128, true, 2e-5);
  expect_matches({4, 2, 48, 32, false, false, 48, true}, {DType::F16, DType::F16, true}, batches, 2, 128, true, 2e-3);
  expect_matches({2, 2, 20, 20, false, true, 0, false}, {DType::F32, DType::F16, true}, batches, 2, 128, true, 1e-4);
  expect_matches({2, 1, 64, 64, true, true, 32, false}, {DType::Q8_0, DType::Q4_0, false}, batches, 2, 128, true, 3e-2);
  expect_matches({3, 1, 32, 96, false, false, 16, true}, {DType::Q4_0, DType::Q8_0, true}, batches, 2, 128, true, 3e-2);
}

TEST(CudaAttention, SinksAndWindowsMatchReference) {
  const std::vector<std::vector<SliceOf>> batches = {
      {{0, 70}, {1, 3}}, {{1, 1}, {0, 2}}, {{1, 64}, {0, 1}}, {{0, 16}, {1, 5}}};
  for (const int window : {0, 5, 40}) {
    const Shape any{4, 2, 32, 32, false, false, 32, false, true, window};
    expect_matches(any, {DType::F32, DType::F32, false}, batches, 2, 128, true, 2e-5);
    const Shape fast{4, 2, 64, 64, false, false, 64, false, window != 40, window};
    expect_matches(fast, {DType::F16, DType::F16, false}, batches, 2, 128, false, 8e-3);
  }
}

// Whole texts, of the decode class and of the prefill class, in slices that end anywhere in a page.
TEST(CudaAttention, BothDirectionsMatchReference) {
  for (const std::vector<SliceOf>& batch : {std::vector<SliceOf>{{0, 16}, {1, 3}}, {{0, 70}, {1, 17}}, {{0, 128}}}) {
    const Shape odd{3, 3, 20, 20, false, false, 0, false, false, 0, true};
    expect_matches(odd, {DType::F32, DType::F32, false}, {batch}, 2, 128, true, 2e-5);
    const Shape grouped{4, 2, 64, 64, false, false, 32, false, false, 0, true};
    for (const KvFormat& format : {KvFormat{DType::F16, DType::F16, false}, KvFormat{DType::F16, DType::F16, true}}) {
      expect_matches(grouped, format, {batch}, 2, 128, false, 8e-3);
    }
  }
}

constexpr DType kFastTypes[] = {DType::F16, DType::Q8_0, DType::Q4_0};

// Against an oracle that stores the same rows: what differs is the rounding of q, k, v and the weights to halves, and
// now and then a code of a quantised row.
double fast_tolerance(KvFormat format) { return format.k == DType::F16 && format.v == DType::F16 ? 8e-3 : 5e-2; }

TEST(CudaAttention, FastDecodeMatchesReference) {
  for (DType k : kFastTypes) {
    for (DType v : kFastTypes) {
      const KvFormat format{k, v, k == DType::Q4_0};
      expect_matches({4, 2, 64, 64, true, true, 32, false}, format,
                     {{{0, 16}, {1, 3}}, {{1, 1}, {0, 16}}, {{0, 16}, {1, 2}}, {{0, 15}, {1, 1}}, {{1, 1}, {0, 7}}}, 2,
                     128, false, fast_tolerance(format));
    }
  }
  const std::vector<std::vector<SliceOf>> batches = {
      {{0, 16}, {1, 3}}, {{0, 16}, {1, 1}}, {{0, 16}, {1, 0}}, {{0, 16}}, {{0, 3}}};
  expect_matches({16, 2, 256, 256, true, true, 64, false}, {DType::F16, DType::F16, false}, batches, 2, 128, false,
                 8e-3);
  expect_matches({6, 2, 128, 128, false, false, 128, true}, {DType::F16, DType::F16, true}, batches, 2, 128, false,
                 8e-3);
  expect_matches({2, 2, 64, 64, false, true, 0, false}, {DType::F16, DType::F16, false}, batches, 2, 128, false, 8e-3);
  expect_matches({40, 2, 64, 64, false, true, 0, false}, {DType::F16, DType::F16, false}, batches, 2, 128, false, 8e-3);
}

// The widest heads leave the least room in the shared memory of the smallest cards.
TEST(CudaAttention, WideHeadsInEveryFormat) {
  for (DType k : kFastTypes) {
    for (DType v : kFastTypes) {
      const KvFormat format{k, v, false};
      expect_matches({2, 1, 256, 256, true, true, 256, false}, format, {{{0, 16}}, {{0, 3}}}, 1, 64, false,
                     fast_tolerance(format));
    }
  }
}

TEST(CudaAttention, FastPrefillMatchesReference) {
  for (DType k : kFastTypes) {
    for (DType v : kFastTypes) {
      const KvFormat format{k, v, k == DType::Q4_0};
      expect_matches({4, 2, 64, 64, true, true, 32, false}, format, {{{0, 70}, {1, 17}}, {{1, 1}, {0, 40}}}, 2, 128,
                     false, fast_tolerance(format));
    }
  }
  const std::vector<std::vector<SliceOf>> batches = {{{0, 67}, {1, 3}}, {{0, 1}, {1, 20}}, {{0, 33}}};
  expect_matches({16, 2, 256, 256, true, true, 64, false}, {DType::F16, DType::F16, false}, batches, 2, 128, false,
                 8e-3);
  expect_matches({4, 2, 256, 256, true, true, 64, false}, {DType::Q8_0, DType::Q4_0, false}, batches, 2, 128, false,
                 5e-2);
  expect_matches({6, 2, 128, 128, false, false, 128, true}, {DType::F16, DType::F16, true}, batches, 2, 128, false,
                 8e-3);
}

// The rows of `in` from `first` on.
std::vector<std::vector<float>> rows_of(const Fixture& f, const std::vector<std::vector<float>>& in, int first, int n) {
  std::vector<std::vector<float>> rows;
  for (size_t b = 0; b < in.size(); ++b) {
    const int width = f.program.buffers[b].width;
    rows.emplace_back(in[b].begin() + int64_t{first} * width, in[b].begin() + int64_t{first + n} * width);
  }
  return rows;
}

TEST(CudaAttention, TheBatchLeavesNoTraceOnDecoding) {
  for (const bool exact : {false, true}) {
    const Shape shape{8, 2, 64, 64, true, true, 32, false};
    const KvFormat format{DType::F16, DType::Q8_0, false};
    Fixture together(shape, format, 3, 192, exact), alone(shape, format, 3, 192, exact);
    const auto past = together.inputs(120 + 60 + 5);
    together.run({{0, 120}, {1, 60}, {2, 5}}, past);
    alone.run({{0, 120}, {1, 60}, {2, 5}}, past);
    const auto in = together.inputs(1 + 16 + 40);
    const std::vector<float> got = together.run({{0, 1}, {1, 16}, {2, 40}}, in);
    const int width = together.program.buffers[3].width;
    for (int t = 0; t < 16; ++t) {
      const std::vector<float> row = alone.run({{1, 1}}, rows_of(alone, in, 1 + t, 1));
      EXPECT_EQ(row, std::vector<float>(got.begin() + int64_t{1 + t} * width, got.begin() + int64_t{2 + t} * width));
    }
  }
}

// Few splits are summed by the last block, many by a launch of their own, and blocks may be fewer than splits: a row
// that sees one page, and rows that see two or three, have the same bits everywhere.
TEST(CudaAttention, WhoSumsTheSplitsLeavesNoTrace) {
  for (const DType v : {DType::F16, DType::Q8_0}) {
    const Shape shape{6, 1, 64, 64, true, true, 32, false, true};
    const KvFormat format{DType::F16, v, false};
    on_both_schedules([&] {
      Fixture few(shape, format, 2, 704, false), many(shape, format, 2, 704, false),
          fewer(shape, format, 2, 704, false);
      many.store_past(many.inputs(640), 640);
      const auto past = few.inputs(50);
      for (Fixture* f : {&few, &many, &fewer}) f->run({{1, 50}}, past);
      fewer.told_kv = 1;
      const int width = few.program.buffers[3].width;
      for (const int n : {16, 1, 16, 16, 16, 16}) {
        const auto in = few.inputs(1 + n);
        const std::vector<float> beside = many.run({{0, 1}, {1, n}}, in);
        const auto own = rows_of(few, in, 1, n);
        const std::vector<float> alone = few.run({{1, n}}, own);
        EXPECT_EQ(alone, std::vector<float>(beside.begin() + width, beside.end()));
        EXPECT_EQ(alone, fewer.run({{1, n}}, own));
      }
    });
  }
}

// Past 4096 tokens splits grow to two pages; a slice that crosses the border has rows of both kinds.
TEST(CudaAttention, SplitsGrowWithTheContext) {
  const Shape shape{2, 1, 64, 64, false, true, 32, false};
  const KvFormat format{DType::F16, DType::F16, false};
  Fixture together(shape, format, 1, 4224, false), alone(shape, format, 1, 4224, false);
  const auto past = together.inputs(4090);
  for (Fixture* f : {&together, &alone}) {
    // Only the keys and values of the past matter: take them over without computing what nobody reads.
    f->store_past(past, 4090);
  }
  const auto in = together.inputs(12);
  std::vector<float> want;
  const std::vector<float> got = together.run({{0, 12}}, in, &want);
  EXPECT_LT(relative_error(got, want), 8e-3);
  const int width = together.program.buffers[3].width;
  for (int t = 0; t < 12; ++t) {
    const std::vector<float> row = alone.run({{0, 1}}, rows_of(alone, in, t, 1));
    EXPECT_EQ(row, std::vector<float>(got.begin() + int64_t{t} * width, got.begin() + int64_t{t + 1} * width)) << t;
  }
}

}  // namespace
}  // namespace chimere::cuda
