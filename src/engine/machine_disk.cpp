// machine_disk.cpp  How fast a folder's disk reads: a file without a name, read past the page cache where that is possible.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <span>
#include <thread>

#include "base/platform/aligned_memory.h"
#include "base/platform/scratch_file.h"
#include "engine/machine.h"

namespace chimere::engine {
namespace {

using DiskClock = std::chrono::steady_clock;

constexpr size_t kAlign = ScratchFile::kPage;
constexpr uint64_t kPiece = uint64_t{4} << 20;

struct FreeBytes {
  void operator()(std::byte* p) const { free_aligned(p); }
};
using AlignedBytes = std::unique_ptr<std::byte, FreeBytes>;

AlignedBytes aligned_bytes(size_t n) {
  return AlignedBytes(static_cast<std::byte*>(allocate_aligned((n + kAlign - 1) / kAlign * kAlign, kAlign)));
}

Status fill(ScratchFile& file, uint64_t bytes) {
  const AlignedBytes piece = aligned_bytes(kPiece);
  std::mt19937_64 random(1);  // so that a disk that compresses has nothing to compress
  for (size_t i = 0; i < kPiece; i += sizeof(uint64_t)) {
    const uint64_t value = random();
    std::copy_n(reinterpret_cast<const std::byte*>(&value), sizeof value, piece.get() + i);
  }
  for (uint64_t at = 0; at < bytes; at += kPiece) TRY(file.write({piece.get(), std::min(kPiece, bytes - at)}, at));
  return file.flush();
}

// Bytes a second of reads at these places by several threads.
Result<double> time_reads(const ScratchFile& file, const std::vector<uint64_t>& places, uint64_t read_bytes,
                          int n_threads) {
  std::atomic<size_t> next{0};
  std::vector<Status> done(static_cast<size_t>(n_threads), Status(Ok{}));
  const auto begin = DiskClock::now();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < n_threads; ++t) {
      threads.emplace_back([&, t] {
        const AlignedBytes to = aligned_bytes(read_bytes);
        for (size_t i; (i = next++) < places.size();) {
          if (Status s = file.read({to.get(), read_bytes}, places[i]); !s) {
            done[static_cast<size_t>(t)] = std::move(s);
            return;
          }
        }
      });
    }
  }
  const double seconds = std::chrono::duration<double>(DiskClock::now() - begin).count();
  for (Status& s : done) TRY(std::move(s));
  return static_cast<double>(read_bytes) * static_cast<double>(places.size()) / std::max(seconds, 1e-9);
}

}  // namespace

Result<DiskSpeed> measure_disk(const std::string& folder, uint64_t bytes) {
  bytes = std::max(bytes, 8 * kPiece) / kPiece * kPiece;
  TRY_ASSIGN(ScratchFile file, ScratchFile::create(folder));
  TRY(fill(file, bytes));
  DiskSpeed speed{folder, 0, 0, file.is_direct()};
  std::vector<uint64_t> in_order, anywhere;
  for (uint64_t at = 0; at < bytes; at += kPiece) in_order.push_back(at);
  TRY_ASSIGN(speed.sequential_bytes_s, time_reads(file, in_order, kPiece, 2));
  file.forget();
  std::mt19937_64 random(2);
  for (uint64_t n = 0; n < bytes / kExpertRead; ++n) {
    anywhere.push_back(random() % (bytes - kExpertRead) / kAlign * kAlign);
  }
  TRY_ASSIGN(speed.random_bytes_s, time_reads(file, anywhere, kExpertRead, kReadsInFlight));
  return speed;
}

}  // namespace chimere::engine
