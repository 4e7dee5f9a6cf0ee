#include "engine/machine.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "backend/cpu/cpu_features.h"
#include "backend/cpu/packed_matrix.h"
#include "base/check.h"
#include "base/thread_pool.h"
#include "engine/benchmark.h"
#include "tensor/random_blocks.h"
#ifdef CHIMERE_HAS_CUDA
#include "backend/cuda/measure.h"
#endif

namespace chimere::engine {
namespace {

using MachineClock = std::chrono::steady_clock;

// The fastest of several runs, the first of which does not count: whatever else runs on the machine only adds to it.
double least_seconds(int runs, const std::function<void()>& run) {
  double least = 1e9;
  for (int i = -1; i < runs; ++i) {
    const auto begin = MachineClock::now();
    run();
    if (i >= 0) least = std::min(least, std::chrono::duration<double>(MachineClock::now() - begin).count());
  }
  return std::max(least, 1e-9);
}

// The value behind "name : " of a file of the system; empty when it is not there.
std::string system_value(const char* file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name, 0) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

uint64_t kilobytes(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10) * 1024; }

}  // namespace

const ProductSpeed* Machine::product(DType type) const {
  const auto found = std::find_if(products.begin(), products.end(), [&](const auto& p) { return p.type == type; });
  return found == products.end() ? nullptr : &*found;
}

HostFacts host_facts() {
  HostFacts facts;
  facts.processor = system_value("/proc/cpuinfo", "model name");
  facts.isa = cpu::name(cpu::active_isa());
  facts.cores = static_cast<int>(std::thread::hardware_concurrency());
  facts.ram_bytes = kilobytes(system_value("/proc/meminfo", "MemTotal"));
  // The C library adds up the caches of all sockets; a core sees its own.
  for (const char* level : {"3", "2"}) {
    std::ifstream file(std::string("/sys/devices/system/cpu/cpu0/cache/index") + level + "/size");
    std::string size;
    if (facts.cache_bytes == 0 && file >> size) facts.cache_bytes = kilobytes(size);
  }
  return facts;
}

const std::vector<DType>& usual_formats() {
  static const std::vector<DType> formats = {DType::F16,  DType::BF16, DType::Q8_0,   DType::Q6_K,  DType::Q5_K,
                                             DType::Q4_K, DType::Q4_0, DType::IQ4_XS, DType::IQ3_S, DType::MXFP4};
  return formats;
}

void measure_ram(Machine& machine, int n_threads) {
  constexpr uint64_t kBytes = uint64_t{256} << 20;
  const int all = n_threads > 0 ? n_threads : static_cast<int>(std::thread::hardware_concurrency());
  for (int threads = 1; threads < all; threads *= 2)
    machine.ram.push_back({threads, measure_bandwidth(threads, kBytes)});
  machine.ram.push_back({all, measure_bandwidth(all, kBytes)});
}

double measure_barrier(int n_threads) {
  constexpr int kBarriers = 2000;
  ThreadPool pool(n_threads);
  return least_seconds(7,
                       [&] {
                         pool.run([&](Team& team) {
                           for (int i = 0; i < kBarriers; ++i) team.sync();
                         });
                       }) /
         kBarriers;
}

ProductSpeed measure_product(DType type, int n_threads) {
  // As wide as the rows of mid-sized models, and in all more than the caches of most machines.
  constexpr uint64_t kCols = 2048, kBytes = uint64_t{96} << 20, kCachedBytes = uint64_t{1} << 20;
  constexpr int kPromptRows = 256;
  const uint64_t row = row_bytes(type, kCols);
  const uint64_t n_rows = kBytes / row / 64 * 64;
  std::vector<std::byte> blocks(row * n_rows);
  random_rows(type, blocks.data(), static_cast<int64_t>(n_rows), kCols, 1, 0.02f);
  ThreadPool pool(n_threads);
  const cpu::ParallelFor parallel = [&](int64_t n, const std::function<void(int64_t, int64_t)>& body) {
    pool.run([&](Team& team) { team.parallel_for(n, 1, body); });
  };
  auto packed = cpu::PackedMatrix::pack({"measured", type, {kCols, n_rows, 1, 1}, blocks.data()}, parallel);
  CHECK(packed && "a type that the CPU multiplies with");
  std::vector<std::byte>().swap(blocks);
  std::vector<float> input(kPromptRows * kCols), output(kPromptRows * n_rows);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(static_cast<int>(i * 37 % 201) - 100) / 100;
  cpu::Activations x;
  x.bind(input.data(), kCols, kPromptRows, kCols);
  x.quantize_rows(0, kPromptRows);
  const auto multiply = [&](int n_tokens, int n_panels) {
    pool.run([&](Team& team) {
      team.parallel_for(n_panels, 4, [&](int64_t begin, int64_t end) {
        cpu::matmul(*packed, 0, x, {}, n_tokens, cpu::ActMode::int8, output.data(), static_cast<int64_t>(n_rows),
                    static_cast<int>(begin), static_cast<int>(end));
      });
    });
  };
  ProductSpeed speed{type};
  const auto panel = static_cast<double>(packed->panel_bytes());
  const int few = std::max(4, static_cast<int>(static_cast<double>(kCachedBytes) / panel));
  speed.decode_bytes_s = packed->n_panels() * panel / least_seconds(7, [&] { multiply(1, packed->n_panels()); });
  constexpr int kRounds = 50;
  speed.cached_bytes_s = kRounds * few * panel / least_seconds(7, [&] {
                           for (int i = 0; i < kRounds; ++i) multiply(1, few);
                         });
  const double weights = static_cast<double>(few) * cpu::kPanelRows * kCols;
  speed.prompt_flop_s = 2 * weights * kPromptRows / least_seconds(7, [&] { multiply(kPromptRows, few); });
  speed.expert_flop_s = 2 * weights * kExpertRows / least_seconds(7, [&] { multiply(kExpertRows, few); });
  return speed;
}

#ifdef CHIMERE_HAS_CUDA
Result<std::optional<CardSpeed>> measure_card() {
  if (!cuda::has_card()) return std::optional<CardSpeed>{};
  TRY_ASSIGN(const cuda::CardSpeeds found, cuda::measure_card());
  return std::optional(CardSpeed{found.name, found.memory_bytes, found.free_bytes, found.copy_bytes_s,
                                 found.to_card_pinned, found.from_card_pinned, found.to_card, found.from_card});
}
#else
Result<std::optional<CardSpeed>> measure_card() { return std::optional<CardSpeed>{}; }
#endif

}  // namespace chimere::engine
