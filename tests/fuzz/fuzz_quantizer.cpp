// fuzz_quantizer.cpp  libFuzzer target of what the quantiser reads: statistics, bases, losses and rules.
//
// The first byte says which. Any bytes are refused with a message, or keep every promise.
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "quantizer/divergence.h"
#include "quantizer/losses.h"
#include "quantizer/plan.h"
#include "quantizer/statistics.h"

namespace {

using namespace chimere;
using namespace chimere::quantizer;

void read_statistics_bytes(std::span<const std::byte> bytes) {
  auto statistics = parse_statistics(bytes, "fuzz");
  if (!statistics) {
    CHECK(!statistics.error().message.empty());
    return;
  }
  for (const auto& [name, m] : statistics->matrices) {
    CHECK(m.n_cols > 0 && !m.counts.empty() && m.sums.size() == m.n_cols * m.counts.size());
    const TensorView tensor{name, DType::F32, {m.n_cols, 1, m.counts.size(), 1}, nullptr};
    const ColumnWeights weights(&*statistics, tensor);
    for (uint64_t e = 0; e < m.counts.size(); ++e) {
      const float* w = weights.of(e);
      for (uint64_t i = 0; w && i < m.n_cols; ++i) CHECK(w[i] >= 0);
    }
  }
  Statistics twice = *statistics;
  CHECK(bool(twice.merge(*statistics)));
}

void read_base_bytes(std::span<const std::byte> bytes) {
  const auto base = parse_base(bytes, "fuzz");
  if (!base) {
    CHECK(!base.error().message.empty());
    return;
  }
  std::vector<float> row(static_cast<size_t>(base->n_vocab));
  const size_t n = base->windows.n_windows() * base->windows.rows_in_window();
  for (size_t r = 0; r < n; ++r) base->rows->read(r, row);
}

void read_losses_text(std::string_view text) {
  const auto losses = parse_losses(text, "fuzz");
  if (!losses) {
    CHECK(!losses.error().message.empty());
    return;
  }
  const auto again = parse_losses(losses_text(*losses), "fuzz");
  CHECK(again && again->tensors.size() == losses->tensors.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // Copied, so that tables lie where typed pointers may read them.
  const auto all = std::as_bytes(std::span(data + 1, size - 1));
  const std::vector<std::byte> bytes(all.begin(), all.end());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  switch (data[0] % 4) {
    case 0: read_statistics_bytes(bytes); break;
    case 1: read_base_bytes(bytes); break;
    case 2: read_losses_text(text); break;
    case 3: {
      const auto rules = parse_rules(text, "fuzz");
      CHECK(rules || !rules.error().message.empty());
    }
  }
  return 0;
}
