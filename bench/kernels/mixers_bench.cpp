// mixers_bench.cpp  Time of Gated DeltaNet and attention with the sizes of Qwen3.5-35B-A3B, and of Mamba-2 with those
// of Nemotron-3-Nano, on the card.
//
// usage: mixers_bench [gdn] [mamba2] [attention]
// A figure is the time of one layer inside a graph of all layers of the model, launched one after another as in a
// decode step, each layer with its own state: the median of 21 launches. GB/s count what a layer must move at least.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/kernels/attention/attention.h"
#include "backend/cuda/kernels/recurrence/gdn.h"
#include "backend/cuda/kernels/recurrence/mamba2.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/event.h"
#include "backend/cuda/runtime/graph.h"

namespace {

using namespace chimere;
using namespace chimere::cuda;

struct Bench {
  Ledger ledger{uint64_t{100} << 30};
  Stream stream;
  std::mt19937 rng{1};

  template <class T>
  Result<DeviceBuffer<T>> zeros(size_t n) {
    TRY_ASSIGN(DeviceBuffer<T> buffer, DeviceBuffer<T>::create(ledger, Purpose::scratch, n));
    TRY(buffer.zero(stream));
    return Result<DeviceBuffer<T>>{std::move(buffer)};
  }
  template <class T>
  Result<DeviceBuffer<T>> copy(const std::vector<T>& from) {
    TRY_ASSIGN(DeviceBuffer<T> buffer, DeviceBuffer<T>::create(ledger, Purpose::scratch, from.size()));
    TRY(buffer.write(stream, from));
    TRY(stream.synchronize());
    return Result<DeviceBuffer<T>>{std::move(buffer)};
  }
  Result<DeviceBuffer<float>> random(size_t n) {
    std::vector<float> v(n);
    std::normal_distribution<float> normal;
    for (float& x : v) x = normal(rng);
    return copy(v);
  }

  // Median microseconds of one of `n` units of work that `record` gives to the stream.
  Result<double> time(int n, const std::function<Status()>& record) {
    TRY_ASSIGN(Graph graph, Graph::capture(stream, record));
    TRY_ASSIGN(Event start, Event::create(true));
    TRY_ASSIGN(Event end, Event::create(true));
    std::vector<double> us;
    for (int i = 0; i < 24; ++i) {
      TRY(start.record(stream));
      TRY(graph.launch(stream));
      TRY(end.record(stream));
      TRY(end.synchronize());
      TRY_ASSIGN(const float ms, end.milliseconds_since(start));
      if (i >= 3) us.push_back(1e3 * ms / n);
    }
    std::sort(us.begin(), us.end());
    return us[us.size() / 2];
  }
};

// The rows of a batch of n_slices slices of n_tokens each, all at one position.
struct DeviceBatch {
  DeviceBuffer<DeviceSlice> slices;
  DeviceBuffer<int32_t> row_slice, row_pos;
  BatchView view{};
};

Result<DeviceBatch> make_batch(Bench& b, int n_slices, int n_tokens, int pos, float* recurrent,
                               int64_t recurrent_floats, std::byte* const* pages, int n_pages) {
  std::vector<DeviceSlice> slices;
  std::vector<int32_t> row_slice, row_pos;
  for (int i = 0; i < n_slices; ++i) {
    DeviceSlice s{};
    s.recurrent = recurrent == nullptr ? nullptr : recurrent + i * recurrent_floats;
    s.kv_pages = pages == nullptr ? nullptr : pages + int64_t{i} * n_pages;
    s.pos = pos, s.n_tokens = n_tokens, s.first_row = i * n_tokens;
    slices.push_back(s);
    for (int t = 0; t < n_tokens; ++t) {
      row_slice.push_back(i);
      row_pos.push_back(pos + t);
    }
  }
  DeviceBatch batch;
  TRY_ASSIGN(batch.slices, b.copy(slices));
  TRY_ASSIGN(batch.row_slice, b.copy(row_slice));
  TRY_ASSIGN(batch.row_pos, b.copy(row_pos));
  batch.view = {nullptr,
                batch.slices.data(),
                batch.row_slice.data(),
                batch.row_pos.data(),
                nullptr,
                n_slices * n_tokens,
                n_slices,
                0};
  return Result<DeviceBatch>{std::move(batch)};
}

Status bench_gdn(Bench& b) {
  constexpr int kLayers = 30, kMaxSlices = 32, kMaxRows = 4096;
  GdnArgs a;
  a.n_key_heads = 16, a.n_value_heads = 32, a.d_head = 128, a.taps = 4, a.tiled_heads = true, a.eps = 1e-6f;
  const int channels = a.channels(), value = a.n_value_heads * a.d_head;
  const RecurrentLayer layer{3, channels, 32, 128, 128};
  TRY_ASSIGN(const StateLayout layout,
             StateLayout::create({}, std::vector<RecurrentLayer>(kLayers, layer), KvFormat{}));
  TRY_ASSIGN(const auto state, b.zeros<float>(static_cast<size_t>(layout.recurrent_floats()) * kMaxSlices));
  TRY_ASSIGN(const auto qkv, b.random(static_cast<size_t>(kMaxRows) * channels));
  TRY_ASSIGN(const auto z, b.random(static_cast<size_t>(kMaxRows) * value));
  TRY_ASSIGN(const auto gates, b.random(static_cast<size_t>(kMaxRows) * 64));
  TRY_ASSIGN(const auto conv, b.random(static_cast<size_t>(channels) * 4));
  TRY_ASSIGN(const auto vectors, b.random(256));
  TRY_ASSIGN(const auto out, b.zeros<float>(static_cast<size_t>(kMaxRows) * value));
  std::vector<float> decays(32, -0.5f);
  TRY_ASSIGN(const auto decay, b.copy(decays));
  a.max_prefill_slices = 4;
  TRY_ASSIGN(const auto arrivals, b.zeros<int32_t>(static_cast<size_t>(gdn_arrivals(a, kMaxSlices))));
  TRY_ASSIGN(const auto scratch, b.zeros<float>(static_cast<size_t>(gdn_scratch_floats(a, kMaxRows, 4))));
  a.qkv = qkv.data(), a.qkv_stride = channels, a.z = z.data(), a.z_stride = value;
  a.alpha = gates.data(), a.alpha_stride = 64, a.beta = gates.data() + 32, a.beta_stride = 64;
  a.conv = conv.data(), a.a = decay.data(), a.dt_bias = vectors.data(), a.norm = vectors.data() + 128;
  a.out = out.data(), a.out_stride = value, a.arrivals = arrivals.data(), a.scratch = scratch.data();

  struct Case {
    int n_slices, n_tokens;
    bool exact;
  };
  std::printf("gdn: slices tokens | us a layer | GB/s\n");
  for (const Case c : {Case{1, 1, false}, Case{1, 4, false}, Case{1, 16, false}, Case{4, 1, false}, Case{8, 1, false},
                       Case{16, 1, false}, Case{32, 1, false}, Case{1, 512, false}, Case{1, 2048, false},
                       Case{2, 2048, false}, Case{1, 2048, true}}) {
    TRY_ASSIGN(const DeviceBatch batch,
               make_batch(b, c.n_slices, c.n_tokens, 0, state.data(), layout.recurrent_floats(), nullptr, 0));
    a.batch = batch.view;
    a.exact = c.exact;
    a.has_decode = c.n_tokens <= kDecodeTokens;
    a.max_decode_tokens = a.has_decode ? c.n_tokens : 0;
    a.leave_norm = gdn_can_leave_norm(a);
    a.n_prefill_slices = a.has_decode ? 0 : c.n_slices;
    a.max_prefill_tokens = c.n_tokens;
    for (const bool dependent : {false, true}) {
      a.dependent = dependent;
      TRY_ASSIGN(const double us, b.time(kLayers, [&]() -> Status {
        for (int l = 0; l < kLayers; ++l) {
          a.conv_offset = layout.conv_offset(l), a.matrix_offset = layout.matrix_offset(l);
          TRY(gdn_mix(b.stream, a));
        }
        return Ok{};
      }));
      std::printf("gdn: %3d x %4d%s%s | %8.2f | %6.0f\n", c.n_slices, c.n_tokens, c.exact ? " exact" : "",
                  dependent ? " dependent" : "", us, 1e-3 * gdn_bytes(a, c.n_slices, c.n_slices * c.n_tokens) / us);
    }
  }
  return Ok{};
}

Status bench_mamba2(Bench& b) {
  constexpr int kLayers = 23, kMaxSlices = 32, kMaxRows = 2048;
  Mamba2Args a;
  a.n_heads = 64, a.d_head = 64, a.n_groups = 8, a.d_state = 128, a.taps = 4, a.eps = 1e-5f;
  const int channels = a.channels(), inner = a.d_inner();
  const RecurrentLayer layer{3, channels, a.n_heads, a.d_state, a.d_head, a.n_heads};
  TRY_ASSIGN(const StateLayout layout,
             StateLayout::create({}, std::vector<RecurrentLayer>(kLayers, layer), KvFormat{}));
  TRY_ASSIGN(const auto state, b.zeros<float>(static_cast<size_t>(layout.recurrent_floats()) * kMaxSlices));
  a.in_stride = inner + channels + a.n_heads, a.out_stride = inner;
  TRY_ASSIGN(const auto in, b.random(static_cast<size_t>(kMaxRows * a.in_stride)));
  TRY_ASSIGN(const auto conv, b.random(static_cast<size_t>(channels) * 4));
  TRY_ASSIGN(const auto vectors, b.random(static_cast<size_t>(channels + inner + 2 * a.n_heads)));
  TRY_ASSIGN(const auto decay, b.copy(std::vector<float>(static_cast<size_t>(a.n_heads), -0.5f)));
  TRY_ASSIGN(const auto out, b.zeros<float>(static_cast<size_t>(kMaxRows) * inner));
  TRY_ASSIGN(const auto arrivals, b.zeros<int32_t>(static_cast<size_t>(mamba2_arrivals(a, kMaxSlices))));
  TRY_ASSIGN(const auto scratch, b.zeros<float>(static_cast<size_t>(mamba2_scratch_floats(a, kMaxRows))));
  a.z = in.data(), a.xbc = a.z + inner, a.dt = a.xbc + channels;
  a.conv = conv.data(), a.conv_bias = vectors.data(), a.norm = a.conv_bias + channels, a.d = a.norm + inner;
  a.dt_bias = a.d + a.n_heads, a.a = decay.data();
  a.out = out.data(), a.arrivals = arrivals.data(), a.scratch = scratch.data();

  struct Case {
    int n_slices, n_tokens;
  };
  std::printf("mamba2: slices tokens | us a layer | GB/s\n");
  for (const Case c :
       {Case{1, 1}, Case{1, 4}, Case{1, 16}, Case{4, 1}, Case{8, 1}, Case{16, 1}, Case{32, 1}, Case{1, 2048}}) {
    TRY_ASSIGN(const DeviceBatch batch,
               make_batch(b, c.n_slices, c.n_tokens, 0, state.data(), layout.recurrent_floats(), nullptr, 0));
    a.batch = batch.view;
    a.is_decode = c.n_tokens <= kDecodeTokens;
    a.max_tokens = c.n_tokens;
    a.leave_norm = mamba2_can_leave_norm(a);
    for (const bool dependent : {false, true}) {
      a.dependent = dependent;
      TRY_ASSIGN(const double us, b.time(kLayers, [&]() -> Status {
        for (int l = 0; l < kLayers; ++l) {
          a.conv_offset = layout.conv_offset(l), a.matrix_offset = layout.matrix_offset(l);
          TRY(mamba2_mix(b.stream, a));
        }
        return Ok{};
      }));
      std::printf("mamba2: %3d x %4d%s | %8.2f | %6.0f\n", c.n_slices, c.n_tokens, dependent ? " dependent" : "", us,
                  1e-3 * mamba2_bytes(a, c.n_slices, c.n_slices * c.n_tokens) / us);
    }
  }
  return Ok{};
}

Status bench_attention(Bench& b) {
  constexpr int kLayers = 10, kMaxRows = 2048, kMaxSlices = 32;
  struct Case {
    int n_slices, n_tokens, pos;
    KvFormat format;
  };
  const KvFormat f16{DType::F16, DType::F16, false}, small{DType::Q8_0, DType::Q4_0, false};
  std::printf("attention: slices tokens position kv | us a layer | GB/s\n");
  for (const Case c : {Case{1, 1, 50, f16}, Case{1, 1, 511, f16}, Case{1, 1, 4095, f16}, Case{1, 1, 16383, f16},
                       Case{1, 1, 16383, small}, Case{1, 4, 16383, f16}, Case{1, 16, 16383, f16}, Case{8, 1, 4095, f16},
                       Case{32, 1, 1023, f16}, Case{32, 1, 4095, f16}, Case{32, 1, 4095, small}, Case{1, 2048, 0, f16},
                       Case{1, 2048, 0, small}, Case{1, 2048, 14336, f16}, Case{1, 512, 0, f16}}) {
    AttentionArgs a;
    a.n_heads = 16, a.n_kv_heads = 2, a.head_dim_k = a.head_dim_v = 256, a.gated = true, a.eps = 1e-6f;
    a.scale = 1.0f / 16, a.k_type = c.format.k, a.v_type = c.format.v;
    TRY_ASSIGN(const StateLayout layout,
               StateLayout::create(std::vector<KvLayer>(kLayers, KvLayer{2, 256, 256}), {}, c.format));
    const int n_pages = (c.pos + c.n_tokens + kPageTokens - 1) / kPageTokens, n_rows = c.n_slices * c.n_tokens;
    TRY_ASSIGN(const auto memory, b.zeros<std::byte>(layout.page_bytes() * n_pages * c.n_slices));
    std::vector<std::byte*> host_pages;
    for (int i = 0; i < n_pages * c.n_slices; ++i) host_pages.push_back(memory.data() + layout.page_bytes() * i);
    TRY_ASSIGN(const auto pages, b.copy(host_pages));
    TRY_ASSIGN(const DeviceBatch batch,
               make_batch(b, c.n_slices, c.n_tokens, c.pos, nullptr, 0, pages.data(), n_pages));
    TRY_ASSIGN(const auto q, b.random(static_cast<size_t>(n_rows) * 16 * 512));
    TRY_ASSIGN(const auto kv, b.random(static_cast<size_t>(n_rows) * 1024));
    TRY_ASSIGN(const auto vectors, b.random(512));
    std::vector<float> freq(32);
    for (int i = 0; i < 32; ++i) freq[static_cast<size_t>(i)] = std::pow(1e7f, -2.0f * static_cast<float>(i) / 64.0f);
    TRY_ASSIGN(const auto inv_freq, b.copy(freq));
    TRY_ASSIGN(const auto out, b.zeros<float>(static_cast<size_t>(n_rows) * 4096));
    const int decode_rows = c.n_tokens <= kDecodeTokens ? n_rows : 0;
    TRY_ASSIGN(const auto scratch, b.zeros<float>(static_cast<size_t>(attention_scratch_floats(
                                       a, std::min(n_rows, kMaxRows * kMaxSlices), decode_rows))));
    TRY_ASSIGN(const auto arrivals, b.zeros<int32_t>(static_cast<size_t>(attention_arrivals(a, c.n_slices))));
    a.batch = batch.view, a.arrivals = arrivals.data();
    a.q = q.data(), a.q_stride = 16 * 512, a.k = kv.data(), a.k_stride = 1024, a.v = kv.data() + 512, a.v_stride = 1024;
    a.q_norm = vectors.data(), a.k_norm = vectors.data() + 256;
    a.inv_freq = inv_freq.data(), a.n_rot = 64;
    a.k_row_bytes = layout.k_row_bytes(0), a.v_row_bytes = layout.v_row_bytes(0);
    a.out = out.data(), a.out_stride = 4096, a.scratch = scratch.data(), a.max_decode_rows = decode_rows;
    a.has_decode = decode_rows > 0, a.has_prefill = decode_rows == 0;
    a.max_decode_kv = c.pos + c.n_tokens;
    a.max_decode_tokens = std::min(c.n_tokens, kDecodeTokens), a.max_prefill_tokens = c.n_tokens;
    for (const bool dependent : {false, true}) {
      a.dependent = dependent;
      TRY_ASSIGN(const double us, b.time(kLayers, [&]() -> Status {
        for (int l = 0; l < kLayers; ++l) {
          a.k_offset = layout.k_offset(l, 0), a.v_offset = layout.v_offset(l, 0);
          TRY(attention(b.stream, a));
        }
        return Ok{};
      }));
      std::printf("attention: %3d x %4d at %5d %s/%s%s | %8.2f | %6.0f\n", c.n_slices, c.n_tokens, c.pos,
                  std::string(name(c.format.k)).c_str(), std::string(name(c.format.v)).c_str(),
                  dependent ? " dependent" : "", us,
                  1e-3 * attention_bytes(a, int64_t{c.n_slices} * c.pos, n_rows) / us);
    }
  }
  return Ok{};
}

}  // namespace

int main(int argc, char** argv) {
  const auto wanted = [&](const char* what) {
    return argc < 2 || std::any_of(argv + 1, argv + argc, [&](const char* a) { return std::strcmp(a, what) == 0; });
  };
  Result<Stream> stream = Stream::create();
  if (!stream) return std::fprintf(stderr, "%s\n", stream.error().message.c_str()), 1;
  Bench bench;
  bench.stream = std::move(*stream);
  Status status = wanted("gdn") ? bench_gdn(bench) : Status(Ok{});
  if (status && wanted("mamba2")) status = bench_mamba2(bench);
  if (status && wanted("attention")) status = bench_attention(bench);
  if (status) return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return 1;
}
