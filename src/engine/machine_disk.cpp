// machine_disk.cpp  How fast a folder's disk reads: a file without a name, read past the page cache where that is possible.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>

#include "base/platform/io_error.h"
#include "engine/machine.h"

namespace chimere::engine {
namespace {

using DiskClock = std::chrono::steady_clock;

constexpr size_t kAlign = 4096;
constexpr uint64_t kPiece = uint64_t{4} << 20;

struct FreeBytes {
  void operator()(std::byte* p) const { std::free(p); }
};
using AlignedBytes = std::unique_ptr<std::byte, FreeBytes>;

AlignedBytes aligned_bytes(size_t n) {
  return AlignedBytes(static_cast<std::byte*>(std::aligned_alloc(kAlign, (n + kAlign - 1) / kAlign * kAlign)));
}

class ScratchFile {
 public:
  explicit ScratchFile(std::string folder) : folder_(std::move(folder)) {}
  ~ScratchFile() {
    for (const int handle : {written_, read_}) {
      if (handle >= 0) ::close(handle);
    }
  }
  ScratchFile(const ScratchFile&) = delete;

  // Its name is gone before the first byte is written: nothing stays when the program is killed.
  Status create() {
    std::string name = folder_ + "/.chimere-disk-XXXXXX";
    written_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (written_ < 0) return io_error(folder_, "no file can be written there", errno);
    read_ = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
    is_direct_ = read_ >= 0;
    if (!is_direct_) read_ = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    const int opened = errno;
    ::unlink(name.c_str());
    if (read_ < 0) return io_error(folder_, "what was written there can not be read", opened);
    return Ok{};
  }

  Status fill(uint64_t bytes) {
    const AlignedBytes piece = aligned_bytes(kPiece);
    std::mt19937_64 random(1);  // so that a disk that compresses has nothing to compress
    for (size_t i = 0; i < kPiece; i += sizeof(uint64_t)) {
      const uint64_t value = random();
      std::copy_n(reinterpret_cast<const std::byte*>(&value), sizeof value, piece.get() + i);
    }
    for (uint64_t at = 0; at < bytes;) {
      const ssize_t n = ::pwrite(written_, piece.get(), std::min(kPiece, bytes - at), static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return io_error(folder_, "the file to measure with can not be written", n < 0 ? errno : ENOSPC);
      at += static_cast<uint64_t>(n);
    }
    if (::fsync(written_) != 0) return io_error(folder_, "the file to measure with can not be written", errno);
    static_cast<void>(::posix_fadvise(written_, 0, 0, POSIX_FADV_DONTNEED));
    return Ok{};
  }

  Status read(std::byte* to, uint64_t bytes, uint64_t at) const {
    while (bytes > 0) {
      const ssize_t n = ::pread(read_, to, bytes, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return io_error(folder_, "the file to measure with can not be read", n < 0 ? errno : EIO);
      to += n, bytes -= static_cast<uint64_t>(n), at += static_cast<uint64_t>(n);
    }
    return Ok{};
  }
  // Without O_DIRECT: what was read once would come from memory.
  void forget() const {
    if (!is_direct_) static_cast<void>(::posix_fadvise(read_, 0, 0, POSIX_FADV_DONTNEED));
  }
  bool is_direct() const { return is_direct_; }

 private:
  std::string folder_;
  int written_ = -1, read_ = -1;
  bool is_direct_ = false;
};

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
          if (Status s = file.read(to.get(), read_bytes, places[i]); !s) {
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
  ScratchFile file(folder);
  TRY(file.create());
  TRY(file.fill(bytes));
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
