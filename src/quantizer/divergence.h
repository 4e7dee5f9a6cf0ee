// divergence.h  How far the predictions of one model are from those of another: KL divergence, token by token.
//
// The base's log-probabilities are kept in a file, so that the large model is run once and every small one against it:
//
//   "CHKLD1\0\0"                                   8 bytes
//   u32 n_vocab, u32 context, u32 n_windows, u32 first scored row of a window
//   u64 fingerprint of the base model
//   i32 tokens [n_windows, context]
//   for each scored row: f32 top, f32 range, u16 codes [n_vocab]   log p(v) = top - range * code / 65535
//   u64 hash: of all before the rows, then of each row, each seeded with the one before it
//
// All little-endian. log p below top - 30 is stored as top - 30: such a token has less than 1e-13 of the top's share. Codes
// are at most 30 / 131070 = 2.3e-4 off in log p, zero at the top; rows are normalised again when read, and the error of a
// mean over tokens is far below that of the text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/platform/mapped_file.h"
#include "base/result.h"
#include "models/model.h"

namespace chimere::quantizer {

// Tokens cut into windows that are read on their own; the second half of each is scored, so that every scored token has
// at least half a window before it.
struct Windows {
  int context = 512;
  std::vector<int32_t> tokens;  // [n_windows * context]

  size_t n_windows() const { return tokens.size() / static_cast<size_t>(context); }
  // The row whose logits are of the first scored token.
  int first_row() const { return first_scored_row(context); }
  static int first_scored_row(int context) { return (context - 1) / 2; }
  size_t rows_in_window() const { return static_cast<size_t>(context - 1 - first_row()); }
  std::span<const int32_t> window(size_t w) const {
    return std::span(tokens).subspan(w * static_cast<size_t>(context), static_cast<size_t>(context));
  }
};

// Log-probabilities of a base, row by row.
class BaseRows {
 public:
  virtual ~BaseRows() = default;
  // Of scored row `row`, counted over all windows; [n_vocab].
  virtual void read(size_t row, std::span<float> log_probs) const = 0;
};

struct Base {
  Windows windows;
  int n_vocab = 0;
  uint64_t fingerprint = 0;
  std::shared_ptr<const BaseRows> rows;
};

// Limits and hash are checked; errors say what was expected.
Result<Base> open_base(const std::string& path);
Result<Base> parse_base(std::span<const std::byte> bytes, const std::string& label);

// Runs the model over the windows and writes the file.
Status write_base(models::Model& model, const Windows& windows, const std::string& path,
                  const std::function<void(size_t window)>& progress);
// The same in memory, in the codes of the file.
Result<Base> measure_base(models::Model& model, const Windows& windows);

struct Divergence {
  size_t n_tokens = 0;
  double mean = 0, mean_error = 0;  // KL(base || model) in nats, and its standard error
  double median = 0, p99 = 0, p999 = 0, largest = 0;
  double same_top = 0, same_top_error = 0;  // share of tokens whose best guess agrees
  double perplexity = 0, base_perplexity = 0;
  double ratio = 0, ratio_error = 0;  // of perplexities, by the differences token by token
};

// Fails when the vocabularies differ. `progress` may be empty.
Result<Divergence> measure_divergence(models::Model& model, const Base& base,
                                      const std::function<void(size_t window)>& progress);

}  // namespace chimere::quantizer
