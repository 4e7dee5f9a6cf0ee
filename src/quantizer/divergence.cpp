#include "quantizer/divergence.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "base/platform/atomic_file.h"
#include "engine/score.h"
#include "gguf/cursor.h"

namespace chimere::quantizer {
namespace {

constexpr char kMagic[8] = {'C', 'H', 'K', 'L', 'D', '1', 0, 0};
constexpr uint32_t kMaxVocab = 1 << 24, kMaxContext = 1 << 20, kMaxWindows = 1 << 20;
constexpr size_t kHeaderBytes = 8 + 4 * 4 + 8;
constexpr float kRange = 30.0f;
constexpr double kSteps = 65535.0;

size_t coded_row_bytes(size_t n_vocab) { return 8 + 2 * n_vocab; }

void code_row(std::span<const float> logits, std::byte* out) {
  const double total = engine::log_sum_exp(logits);
  const float highest = *std::max_element(logits.begin(), logits.end());
  const float lowest = *std::min_element(logits.begin(), logits.end());
  const auto top = static_cast<float>(highest - total);
  const float range = std::min(kRange, highest - lowest);
  std::memcpy(out, &top, 4);
  std::memcpy(out + 4, &range, 4);
  for (size_t v = 0; v < logits.size(); ++v) {
    const double down = range > 0 ? std::min(1.0, static_cast<double>(highest - logits[v]) / range) : 0.0;
    const auto code = static_cast<uint16_t>(std::lround(down * kSteps));
    std::memcpy(out + 8 + 2 * v, &code, 2);
  }
}

void decode_row(const std::byte* in, std::span<float> log_probs) {
  float top = 0, range = 0;
  std::memcpy(&top, in, 4);
  std::memcpy(&range, in + 4, 4);
  double sum = 0;
  for (size_t v = 0; v < log_probs.size(); ++v) {
    uint16_t code = 0;
    std::memcpy(&code, in + 8 + 2 * v, 2);
    log_probs[v] = static_cast<float>(-range * (code / kSteps));
    sum += std::exp(static_cast<double>(log_probs[v]));
  }
  const auto total = static_cast<float>(std::log(sum));
  for (float& p : log_probs) p -= total;
}

class CodedRows : public BaseRows {
 public:
  CodedRows(MappedFile file, std::vector<std::byte> memory, std::span<const std::byte> codes, size_t row_bytes)
      : file_(std::move(file)), memory_(std::move(memory)), codes_(codes), row_bytes_(row_bytes) {
    if (!memory_.empty()) codes_ = memory_;
  }
  void read(size_t row, std::span<float> log_probs) const override {
    decode_row(codes_.data() + row * row_bytes_, log_probs);
  }

 private:
  MappedFile file_;
  std::vector<std::byte> memory_;
  std::span<const std::byte> codes_;
  size_t row_bytes_;
};

Error no_base(const std::string& label, const std::string& what) { return Error{Code::corrupt, label + ": " + what}; }

struct ParsedBase {
  Base base;
  std::span<const std::byte> codes;
};

Result<ParsedBase> parse_base_bytes(std::span<const std::byte> bytes, const std::string& label) {
  if (bytes.size() < kHeaderBytes + 8 || std::memcmp(bytes.data(), kMagic, 8) != 0) {
    return no_base(label, "expected a file written by `chimere perplexity --save-logits`");
  }
  gguf::Cursor in(bytes.subspan(8, bytes.size() - 16));
  uint32_t n_vocab = 0, context = 0, n_windows = 0, first = 0;
  ParsedBase p;
  in.read(n_vocab), in.read(context), in.read(n_windows), in.read(first), in.read(p.base.fingerprint);
  const bool sane = n_vocab >= 1 && n_vocab <= kMaxVocab && context >= 2 && context <= kMaxContext && n_windows >= 1 &&
                    n_windows <= kMaxWindows &&
                    first == static_cast<uint32_t>(Windows::first_scored_row(static_cast<int>(context)));
  if (!sane) return no_base(label, "its header is damaged");
  const uint64_t n_tokens = uint64_t{context} * n_windows;
  const uint64_t n_codes = uint64_t{context - 1 - first} * n_windows * coded_row_bytes(n_vocab);
  if (in.remaining() != n_tokens * 4 + n_codes) {
    return no_base(label, "expected " + std::to_string(kHeaderBytes + 8 + n_tokens * 4 + n_codes) +
                              " bytes for its windows, found " + std::to_string(bytes.size()));
  }
  uint64_t stored = 0;
  std::memcpy(&stored, bytes.data() + bytes.size() - 8, 8);
  const size_t head_bytes = kHeaderBytes + n_tokens * 4;
  uint64_t hash = hash64(bytes.first(head_bytes));
  const size_t row = coded_row_bytes(n_vocab);
  for (size_t at = head_bytes; at < bytes.size() - 8; at += row) hash = hash64(bytes.subspan(at, row), hash);
  if (stored != hash) return no_base(label, "its contents do not match their hash: it is damaged");
  p.base.n_vocab = static_cast<int>(n_vocab);
  p.base.windows.context = static_cast<int>(context);
  p.base.windows.tokens.resize(n_tokens);
  const auto tokens = in.take(n_tokens * 4);
  std::memcpy(p.base.windows.tokens.data(), tokens.data(), tokens.size());
  for (const int32_t t : p.base.windows.tokens) {
    if (t < 0 || t >= p.base.n_vocab) return no_base(label, "a token is outside of its vocabulary");
  }
  p.codes = in.take(n_codes);
  return Result<ParsedBase>{std::move(p)};
}

// Calls row(global row, logits) for every scored row.
Status run_windows(models::Model& model, const Windows& windows, const std::function<void(size_t window)>& progress,
                   const std::function<void(size_t, int32_t next, std::span<const float>)>& row) {
  size_t scored = 0;
  for (size_t w = 0; w < windows.n_windows(); ++w) {
    const auto tokens = windows.window(w);
    size_t at = 0;
    TRY(engine::all_logits(model, tokens.first(tokens.size() - 1), 0, [&](std::span<const float> logits) {
      if (at >= static_cast<size_t>(windows.first_row())) row(scored++, tokens[at + 1], logits);
      ++at;
    }));
    if (progress) progress(w + 1);
  }
  return Ok{};
}

double quantile(const std::vector<double>& sorted, double share) {
  const auto at = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::min(sorted.size() - 1, at > 0 ? at - 1 : 0)];
}

struct MeanError {
  double mean, error;
};

MeanError mean_and_error(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  const double mean = sum / n;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return {mean, n > 1 ? std::sqrt(squares / (n - 1) / n) : 0};
}

}  // namespace

Result<Base> parse_base(std::span<const std::byte> bytes, const std::string& label) {
  TRY_ASSIGN(ParsedBase p, parse_base_bytes(bytes, label));
  p.base.rows = std::make_shared<CodedRows>(MappedFile(), std::vector<std::byte>(), p.codes,
                                            coded_row_bytes(static_cast<size_t>(p.base.n_vocab)));
  return Result<Base>{std::move(p.base)};
}

Result<Base> open_base(const std::string& path) {
  TRY_ASSIGN(MappedFile file, MappedFile::open(path));
  TRY_ASSIGN(ParsedBase p, parse_base_bytes(file.bytes(), path));
  p.base.rows = std::make_shared<CodedRows>(std::move(file), std::vector<std::byte>(), p.codes,
                                            coded_row_bytes(static_cast<size_t>(p.base.n_vocab)));
  return Result<Base>{std::move(p.base)};
}

Status write_base(models::Model& model, const Windows& windows, const std::string& path,
                  const std::function<void(size_t window)>& progress) {
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  std::vector<std::byte> head;
  const auto put = [&](const void* from, size_t n) {
    const auto* p = static_cast<const std::byte*>(from);
    head.insert(head.end(), p, p + n);
  };
  const uint32_t numbers[4] = {static_cast<uint32_t>(model.n_vocab()), static_cast<uint32_t>(windows.context),
                               static_cast<uint32_t>(windows.n_windows()), static_cast<uint32_t>(windows.first_row())};
  const uint64_t fingerprint = model.fingerprint();
  put(kMagic, 8), put(numbers, 16), put(&fingerprint, 8), put(windows.tokens.data(), windows.tokens.size() * 4);
  TRY(file.write(head));
  uint64_t hash = hash64(head);
  std::vector<std::byte> coded(coded_row_bytes(static_cast<size_t>(model.n_vocab())));
  Status written = Ok{};
  TRY(run_windows(model, windows, progress, [&](size_t, int32_t, std::span<const float> logits) {
    code_row(logits, coded.data());
    hash = hash64(coded, hash);
    if (written) written = file.write(coded);
  }));
  TRY(std::move(written));
  TRY(file.write(std::as_bytes(std::span(&hash, 1))));
  return file.commit();
}

Result<Base> measure_base(models::Model& model, const Windows& windows) {
  Base base{windows, model.n_vocab(), model.fingerprint(), nullptr};
  const size_t row_bytes = coded_row_bytes(static_cast<size_t>(model.n_vocab()));
  std::vector<std::byte> codes(windows.n_windows() * windows.rows_in_window() * row_bytes);
  TRY(run_windows(model, windows, {}, [&](size_t row, int32_t, std::span<const float> logits) {
    code_row(logits, codes.data() + row * row_bytes);
  }));
  base.rows = std::make_shared<CodedRows>(MappedFile(), std::move(codes), std::span<const std::byte>(), row_bytes);
  return Result<Base>{std::move(base)};
}

Result<Divergence> measure_divergence(models::Model& model, const Base& base,
                                      const std::function<void(size_t window)>& progress) {
  if (model.n_vocab() != base.n_vocab) {
    return Error{Code::invalid_argument, "the base has a vocabulary of " + std::to_string(base.n_vocab) +
                                             " tokens, the model one of " + std::to_string(model.n_vocab())};
  }
  std::vector<float> expected(static_cast<size_t>(base.n_vocab));
  std::vector<double> kld, same, nll, base_nll, difference;
  TRY(run_windows(model, base.windows, progress, [&](size_t row, int32_t next, std::span<const float> logits) {
    base.rows->read(row, expected);
    const double total = engine::log_sum_exp(logits);
    double sum = 0;
    for (size_t v = 0; v < expected.size(); ++v) {
      sum += std::exp(static_cast<double>(expected[v])) * (expected[v] - (logits[v] - total));
    }
    kld.push_back(std::max(0.0, sum));
    const auto top = std::max_element(logits.begin(), logits.end()) - logits.begin();
    const auto base_top = std::max_element(expected.begin(), expected.end()) - expected.begin();
    same.push_back(top == base_top ? 1 : 0);
    nll.push_back(total - logits[static_cast<size_t>(next)]);
    base_nll.push_back(-expected[static_cast<size_t>(next)]);
    difference.push_back(nll.back() - base_nll.back());
  }));
  Divergence d;
  d.n_tokens = kld.size();
  const MeanError mean = mean_and_error(kld), agree = mean_and_error(same), more = mean_and_error(difference);
  d.mean = mean.mean;
  d.mean_error = mean.error;
  d.same_top = agree.mean;
  d.same_top_error = agree.error;
  d.perplexity = std::exp(mean_and_error(nll).mean);
  d.base_perplexity = std::exp(mean_and_error(base_nll).mean);
  d.ratio = std::exp(more.mean);
  d.ratio_error = d.ratio * more.error;
  std::sort(kld.begin(), kld.end());
  d.median = quantile(kld, 0.5);
  d.p99 = quantile(kld, 0.99);
  d.p999 = quantile(kld, 0.999);
  d.largest = kld.back();
  return d;
}

}  // namespace chimere::quantizer
