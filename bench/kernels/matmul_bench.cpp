// matmul_bench.cpp  Speed of the packed matrix product on one core: GMAC/s and GB/s of weights for each type.
//
// usage: matmul_bench [--isa NAME] [--exact] [--cols K] [--rows N] [--tokens 1,8,64] [TYPE...]
// Each figure is the median of several repetitions, in processor time: others on the machine disturb it less than they
// would disturb the wall clock. Weights larger than the caches (--rows 65536) show memory speed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/cpu_features.h"
#include "backend/cpu/packed_matrix.h"
#include "tensor/random_blocks.h"

namespace {

using chimere::DType;
namespace cpu = chimere::cpu;

struct Options {
  int64_t n_cols = 512;
  int64_t n_rows = 2048;
  std::vector<int> tokens = {1, 8, 64, 256};
  cpu::ActMode mode = cpu::ActMode::int8;
  std::vector<DType> types;
};

double median_seconds(const cpu::PackedMatrix& w, const cpu::Activations& x, const Options& o, int n_tokens,
                      std::vector<float>& y) {
  const double work = static_cast<double>(o.n_cols) * static_cast<double>(o.n_rows) * n_tokens;
  const int calls = std::max(1, static_cast<int>(2e8 / work));
  std::vector<double> seconds;
  for (int repeat = 0; repeat < 9; ++repeat) {
    const std::clock_t start = std::clock();
    for (int c = 0; c < calls; ++c) matmul(w, 0, x, {}, n_tokens, o.mode, y.data(), o.n_rows, 0, w.n_panels());
    seconds.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / calls);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

int bench_type(DType type, const Options& o) {
  const chimere::DTypeInfo& t = chimere::info(type);
  if (o.n_cols % t.block_elems != 0) return 0;
  const uint64_t row = chimere::row_bytes(type, static_cast<uint64_t>(o.n_cols));
  std::vector<std::byte> blocks(row * static_cast<size_t>(o.n_rows));
  chimere::random_rows(type, blocks.data(), o.n_rows, o.n_cols, 1, 0.02f);
  const chimere::TensorView view{
      "bench", type, {static_cast<uint64_t>(o.n_cols), static_cast<uint64_t>(o.n_rows), 1, 1}, blocks.data()};
  const std::clock_t pack_start = std::clock();
  auto packed = cpu::PackedMatrix::pack(view);
  const double pack_s = static_cast<double>(std::clock() - pack_start) / CLOCKS_PER_SEC;
  if (!packed) {
    std::fprintf(stderr, "%s\n", packed.error().message.c_str());
    return 1;
  }
  const int max_tokens = *std::max_element(o.tokens.begin(), o.tokens.end());
  std::vector<float> input(static_cast<size_t>(max_tokens * o.n_cols));
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  for (float& v : input) v = normal(rng);
  cpu::Activations x;
  x.bind(input.data(), o.n_cols, max_tokens, o.n_cols);
  x.quantize_rows(0, max_tokens);
  std::vector<float> y(static_cast<size_t>(max_tokens * o.n_rows));

  const double weights = static_cast<double>(o.n_cols) * static_cast<double>(o.n_rows);
  std::printf("%-8s %6.4f %6.4f %7.2f", std::string(t.name).c_str(), t.bits_per_weight(),
              8.0 * static_cast<double>(packed->size_bytes()) / weights,
              static_cast<double>(blocks.size()) / pack_s * 1e-9);
  for (int n : o.tokens) {
    const double s = median_seconds(*packed, x, o, n, y);
    std::printf("  %6.1f %6.1f", weights * n / s * 1e-9, static_cast<double>(packed->size_bytes()) / s * 1e-9);
  }
  std::printf("\n");
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--exact") {
      o.mode = cpu::ActMode::f32;
    } else if (arg == "--cols" && has_value) {
      o.n_cols = std::atoll(argv[++i]);
    } else if (arg == "--rows" && has_value) {
      o.n_rows = std::atoll(argv[++i]);
    } else if (arg == "--tokens" && has_value) {
      o.tokens.clear();
      for (const char* p = argv[++i]; *p;) {
        char* end = nullptr;
        o.tokens.push_back(static_cast<int>(std::strtol(p, &end, 10)));
        if (end == p) break;
        p = *end == ',' ? end + 1 : end;
      }
    } else if (arg == "--isa" && has_value) {
      const std::string_view wanted = argv[++i];
      for (cpu::Isa isa : cpu::available_isas()) {
        if (cpu::name(isa) == wanted) cpu::set_isa_for_testing(isa);
      }
    } else if (const auto type = chimere::dtype_from_name(arg)) {
      o.types.push_back(*type);
    } else {
      std::fprintf(stderr, "unknown argument or type: %s\n", argv[i]);
      return 2;
    }
  }
  if (o.tokens.empty() || o.n_cols < 1 || o.n_rows < 1 ||
      std::any_of(o.tokens.begin(), o.tokens.end(), [](int n) { return n < 1; })) {
    std::fprintf(stderr, "tokens, cols and rows must be positive\n");
    return 2;
  }
  if (o.types.empty()) {
    for (const auto& t : chimere::all_dtypes()) {
      if (cpu::PackedMatrix::supports(t.type)) o.types.push_back(t.type);
    }
  }
  std::printf("isa %s, [%lld, %lld], %s activations; tokens:", std::string(cpu::name(cpu::active_isa())).c_str(),
              static_cast<long long>(o.n_rows), static_cast<long long>(o.n_cols),
              o.mode == cpu::ActMode::int8 ? "int8" : "f32");
  for (int n : o.tokens) std::printf(" %d", n);
  std::printf("\ntype     file   packed pack_GB/s  then GMAC/s and weight GB/s for each token count\n");
  for (DType type : o.types) {
    if (bench_type(type, o) != 0) return 1;
  }
  return 0;
}
