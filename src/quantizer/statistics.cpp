#include "quantizer/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "base/platform/atomic_file.h"
#include "base/platform/mapped_file.h"
#include "gguf/cursor.h"
#include "gguf/value.h"
#include "gguf/writer.h"
#include "tensor/dequantize.h"

namespace chimere::quantizer {
namespace {

constexpr std::string_view kSumsSuffix = ".in_sum2", kCountsSuffix = ".counts";
// Of the old form, whose lengths are checked against the file anyway: a limit on memory for names.
constexpr int32_t kMaxEntries = 1 << 20, kMaxNameLength = 4096;
// A column's weight is at least this share of the mean.
constexpr double kLeastShare = 1e-4;

Error damaged_statistics(const std::string& label, const std::string& what) {
  return Error{Code::corrupt, label + ": " + what};
}

Status check_sums(const std::string& label, const std::string& name, const InputSums& m) {
  for (const double count : m.counts) {
    if (!(count >= 0) || !std::isfinite(count)) {
      return damaged_statistics(label, gguf::quoted(name) + " has a count that is no number of rows");
    }
  }
  for (const double sum : m.sums) {
    if (!(sum >= 0) || !std::isfinite(sum)) {
      return damaged_statistics(label, gguf::quoted(name) + " has a sum of squares that is negative or not finite");
    }
  }
  return Ok{};
}

Result<Statistics> from_gguf(const gguf::File& file, const std::string& label) {
  Statistics s;
  const auto type = file.metadata().get_string("general.type");
  if (!type || *type != "imatrix") {
    return damaged_statistics(
        label, "expected general.type = imatrix, found " + (type ? gguf::quoted(*type) : "none: is this a model?"));
  }
  if (file.metadata().contains("imatrix.datasets")) {
    TRY_ASSIGN(const auto names, file.metadata().get_strings("imatrix.datasets"));
    s.datasets.assign(names.begin(), names.end());
  }
  TRY_ASSIGN(const int64_t chunks, file.metadata().get_int_or("imatrix.chunk_count", 0, UINT32_MAX, 0));
  TRY_ASSIGN(const int64_t size, file.metadata().get_int_or("imatrix.chunk_size", 0, UINT32_MAX, 0));
  s.n_chunks = static_cast<uint64_t>(chunks);
  s.chunk_tokens = static_cast<uint64_t>(size);
  for (const TensorView& sums : file.tensors()) {
    if (!sums.name.ends_with(kSumsSuffix)) continue;
    const std::string name(sums.name.substr(0, sums.name.size() - kSumsSuffix.size()));
    const TensorView* counts = file.find(name + std::string(kCountsSuffix));
    if (!counts) return damaged_statistics(label, gguf::quoted(name) + " has sums and no counts");
    const uint64_t n_experts = counts->elems();
    const bool fits = sums.type == DType::F32 && counts->type == DType::F32 && n_experts > 0 && sums.elems() > 0 &&
                      sums.elems() % n_experts == 0;
    if (!fits) {
      return damaged_statistics(label, gguf::quoted(name) +
                                           ": expected F32 sums {columns, experts} and counts of the "
                                           "experts, found " +
                                           to_string(sums.ne) + " and " + to_string(counts->ne));
    }
    InputSums m;
    m.n_cols = sums.elems() / n_experts;
    std::vector<float> values(sums.elems());
    dequantize_row(DType::F32, sums.data, values.data(), static_cast<int64_t>(values.size()));
    m.sums.assign(values.begin(), values.end());
    values.resize(n_experts);
    dequantize_row(DType::F32, counts->data, values.data(), static_cast<int64_t>(values.size()));
    m.counts.assign(values.begin(), values.end());
    TRY(check_sums(label, name, m));
    s.matrices[name] = std::move(m);
  }
  if (s.matrices.empty()) return damaged_statistics(label, "holds no statistics of any matrix");
  return Result<Statistics>{std::move(s)};
}

// int32 n; n times: name (int32 length, bytes), int32 calls, int32 n_values, float values (mean square times calls);
// then perhaps int32 chunks and the name of the text.
Result<Statistics> from_old_form(std::span<const std::byte> bytes, const std::string& label) {
  gguf::Cursor in(bytes);
  const auto text = [&](int32_t n) {
    const auto raw = in.take(static_cast<uint64_t>(n));
    return std::string(reinterpret_cast<const char*>(raw.data()), raw.size());
  };
  const auto fits = [&](int32_t n, int32_t most) {
    return n >= 0 && n <= most && static_cast<uint64_t>(n) <= in.remaining();
  };
  int32_t n_entries = 0;
  if (!in.read(n_entries) || n_entries < 1 || n_entries > kMaxEntries) {
    return damaged_statistics(label, "is no imatrix: expected GGUF, or the older form with a count of matrices");
  }
  Statistics s;
  for (int32_t i = 0; i < n_entries; ++i) {
    const std::string where = "matrix " + std::to_string(i + 1) + " of " + std::to_string(n_entries);
    int32_t length = 0, calls = 0, n = 0;
    if (!in.read(length) || length < 1 || !fits(length, kMaxNameLength)) {
      return damaged_statistics(label, where + " has no name: the file is cut short or no imatrix");
    }
    std::string name = text(length);
    if (!in.read(calls) || !in.read(n) || n < 1 || calls < 0 || static_cast<uint64_t>(n) > in.remaining() / 4) {
      return damaged_statistics(label, where + ", " + gguf::quoted(name) + ": the file is cut short");
    }
    InputSums m;
    m.n_cols = static_cast<uint64_t>(n);
    m.counts = {static_cast<double>(calls)};
    const auto raw = in.take(static_cast<uint64_t>(n) * 4);
    std::vector<float> values(m.n_cols);
    std::memcpy(values.data(), raw.data(), raw.size());
    m.sums.assign(values.begin(), values.end());
    TRY(check_sums(label, name, m));
    s.matrices[std::move(name)] = std::move(m);
  }
  int32_t chunks = 0, length = 0;
  if (in.read(chunks) && chunks > 0) s.n_chunks = static_cast<uint64_t>(chunks);
  if (in.read(length) && length > 0 && fits(length, kMaxNameLength)) s.datasets.push_back(text(length));
  return Result<Statistics>{std::move(s)};
}

}  // namespace

const InputSums* Statistics::find(std::string_view tensor) const {
  const auto found = matrices.find(tensor);
  return found == matrices.end() ? nullptr : &found->second;
}

Status Statistics::merge(const Statistics& other) {
  for (const auto& [name, theirs] : other.matrices) {
    const InputSums* ours = find(name);
    if (ours && (ours->n_cols != theirs.n_cols || ours->counts.size() != theirs.counts.size())) {
      return Error{Code::invalid_argument,
                   gguf::quoted(name) + ": statistics of " + std::to_string(ours->n_cols) + " columns and " +
                       std::to_string(ours->counts.size()) + " experts cannot be merged with those of " +
                       std::to_string(theirs.n_cols) + " and " + std::to_string(theirs.counts.size())};
    }
  }
  for (const auto& [name, theirs] : other.matrices) {
    InputSums& ours = matrices[name];
    if (ours.sums.empty()) {
      ours = theirs;
      continue;
    }
    for (size_t i = 0; i < ours.sums.size(); ++i) ours.sums[i] += theirs.sums[i];
    for (size_t i = 0; i < ours.counts.size(); ++i) ours.counts[i] += theirs.counts[i];
  }
  for (const std::string& d : other.datasets) {
    if (std::find(datasets.begin(), datasets.end(), d) == datasets.end()) datasets.push_back(d);
  }
  n_chunks += other.n_chunks;
  if (chunk_tokens == 0) chunk_tokens = other.chunk_tokens;
  return Ok{};
}

Result<Statistics> parse_statistics(std::span<const std::byte> bytes, const std::string& label) {
  const bool is_gguf = bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
  if (!is_gguf) return from_old_form(bytes, label);
  TRY_ASSIGN(const gguf::File file, gguf::File::parse(bytes, label));
  return from_gguf(file, label);
}

Result<Statistics> read_statistics(const std::string& path) {
  TRY_ASSIGN(const MappedFile file, MappedFile::open(path));
  return parse_statistics(file.bytes(), path);
}

Result<std::vector<std::byte>> statistics_bytes(const Statistics& s) {
  gguf::Writer writer;
  gguf::Metadata& m = writer.metadata();
  m.set_string("general.type", "imatrix");
  m.set("imatrix.datasets", {gguf::ValueType::string, true, s.datasets});
  m.set_int("imatrix.chunk_count", gguf::ValueType::u32,
            static_cast<int64_t>(std::min<uint64_t>(s.n_chunks, UINT32_MAX)));
  m.set_int("imatrix.chunk_size", gguf::ValueType::u32,
            static_cast<int64_t>(std::min<uint64_t>(s.chunk_tokens, UINT32_MAX)));
  std::vector<std::vector<float>> kept;
  kept.reserve(s.matrices.size() * 2);
  const auto add = [&](const std::string& name, const Shape& ne, const std::vector<double>& values) {
    kept.emplace_back(values.begin(), values.end());
    return writer.add_tensor(name, DType::F32, ne, std::as_bytes(std::span(kept.back())));
  };
  for (const auto& [name, sums] : s.matrices) {
    TRY(add(name + std::string(kSumsSuffix), {sums.n_cols, sums.counts.size(), 1, 1}, sums.sums));
    TRY(add(name + std::string(kCountsSuffix), {1, sums.counts.size(), 1, 1}, sums.counts));
  }
  return writer.write_memory();
}

Status write_statistics(const Statistics& statistics, const std::string& path) {
  TRY_ASSIGN(const std::vector<std::byte> bytes, statistics_bytes(statistics));
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  TRY(file.write(bytes));
  return file.commit();
}

Status check_statistics(const Statistics& statistics, std::span<const TensorView> tensors) {
  size_t n_known = 0;
  for (const TensorView& tensor : tensors) {
    const InputSums* m = statistics.find(tensor.name);
    if (!m) continue;
    ++n_known;
    const uint64_t n = m->counts.size();
    if (m->n_cols == tensor.ne[0] && (n == 1 || n == tensor.ne[2])) continue;
    // The older form writes the experts of a bank one behind the other, under one count.
    if (n == 1 && m->n_cols == tensor.ne[0] * tensor.ne[2]) continue;
    return Error{Code::invalid_argument, "the statistics are of another model: " + gguf::quoted(tensor.name) + " is " +
                                             to_string(tensor.ne) + ", they have " + std::to_string(m->n_cols) +
                                             " columns and " + std::to_string(n) + " experts"};
  }
  if (n_known > 0) return Ok{};
  return Error{Code::invalid_argument, "the statistics are of another model: they name none of its tensors"};
}

uint64_t hash_of(const Statistics* statistics) {
  if (!statistics) return 0;
  uint64_t h = hash64("statistics");
  for (const auto& [name, m] : statistics->matrices) {
    h = hash64(std::as_bytes(std::span(m.sums)), hash64(name, h));
    h = hash64(std::as_bytes(std::span(m.counts)), h);
  }
  return h;
}

ColumnWeights::ColumnWeights(const Statistics* statistics, const TensorView& tensor)
    : n_cols_(tensor.ne[0]), n_experts_(tensor.ne[2]) {
  const InputSums* m = statistics ? statistics->find(tensor.name) : nullptr;
  if (!m) return;
  const bool each = m->sums.size() == n_cols_ * n_experts_;  // else one row for all
  std::vector<double> counts(n_experts_, m->counts.front());
  if (m->counts.size() == n_experts_) counts = m->counts;
  std::vector<double> all(n_cols_, 0.0);
  double rows = 0;
  const auto sums_of = [&](uint64_t e) { return m->sums.data() + (each ? e * n_cols_ : 0); };
  for (uint64_t e = 0; e < n_experts_; ++e) {
    for (uint64_t i = 0; i < n_cols_; ++i) all[i] += sums_of(e)[i];
    rows += counts[e];
  }
  if (rows <= 0) return;
  weights_.resize(n_cols_ * n_experts_);
  shares_.resize(n_experts_);
  for (uint64_t e = 0; e < n_experts_; ++e) {
    const bool seen = counts[e] > 0;
    float* to = weights_.data() + e * n_cols_;
    double mean = 0;
    for (uint64_t i = 0; i < n_cols_; ++i) {
      const double w = seen ? sums_of(e)[i] / counts[e] : all[i] / rows;
      mean += w / static_cast<double>(n_cols_);
      to[i] = static_cast<float>(w);
    }
    const auto least = static_cast<float>(mean > 0 ? mean * kLeastShare : 1.0);
    for (uint64_t i = 0; i < n_cols_; ++i) to[i] = std::max(to[i], least);
    shares_[e] = counts[e] / rows;
  }
}

const float* ColumnWeights::of(uint64_t expert) const {
  return weights_.empty() ? nullptr : weights_.data() + expert % n_experts_ * n_cols_;
}

double ColumnWeights::share(uint64_t expert) const {
  return shares_.empty() ? 1.0 / static_cast<double>(n_experts_) : shares_[expert % n_experts_];
}

}  // namespace chimere::quantizer
