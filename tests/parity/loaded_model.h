// loaded_model.h  Models of the repository bound to any backend, and their texts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "backend_under_test.h"
#include "gguf/gguf.h"
#include "models/fixture_for_test.h"
#include "models/registry.h"

namespace chimere::parity {

namespace fs = std::filesystem;

// How far logits in float32 may be from the oracle's.
inline constexpr float kExactLimit = 5e-4f;
// What 8-bit activations may cost on quantised files, in nats (models/golden_test.cpp).
inline constexpr double kFastDivergence = 1.6e-2;

// A file bound to a backend; both live together.
class Loaded {
 public:
  static Result<Loaded> open(const fs::path& folder, CompileFunction compile, const LoadOptions& options) {
    Loaded loaded;
    TRY_ASSIGN(gguf::File file, gguf::File::open((folder / "model.gguf").string()));
    loaded.file_ = std::make_unique<gguf::File>(std::move(file));
    models::FileSource source(*loaded.file_);
    TRY_ASSIGN(Program program, models::build_program(source));
    TRY_ASSIGN(loaded.executable_, compile(std::move(program), options));
    return Result<Loaded>{std::move(loaded)};
  }

  Executable& operator*() { return *executable_; }
  Executable* operator->() { return executable_.get(); }

 private:
  std::unique_ptr<gguf::File> file_;
  ExecutablePtr executable_;
};

// Experts in RAM are computed there.
inline LoadOptions options_for(bool exact, const KvFormat& kv, int cpu_moe = 0) {
  LoadOptions options;
  options.cpu_moe = cpu_moe;
  options.ram_experts = RamExperts::cpu;
  options.exact = exact;
  options.kv = kv;
  options.max_rows = 96;
  options.n_threads = backend_under_test().thread_counts.back();
  return options;
}

inline Loaded load(const fs::path& folder, CompileFunction compile, bool exact, const KvFormat& kv, int cpu_moe = 0) {
  auto loaded = Loaded::open(folder, compile, options_for(exact, kv, cpu_moe));
  EXPECT_TRUE(loaded) << loaded.error().message;
  return std::move(*loaded);
}

inline std::vector<int32_t> some_tokens(const fs::path& folder, size_t n) {
  const auto arrays = fixture::read_arrays(folder);
  const auto tokens = arrays.at("tokens_150").ints();
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(std::min(n, tokens.size()))};
}

}  // namespace chimere::parity
