// state_memory.h  Sequence state on the card: blocks cut from slabs, so that a page for 64 more tokens needs no call to
// the driver (cudaMalloc may wait for the whole card).
//
// Blocks of one size share slabs. A slab without blocks in use stays for the next sequence until the budget is needed
// for another size. Work is ordered by the stream: copies run after the kernels submitted before them. Used by one
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/runtime/ledger.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

class DeviceStateMemory final : public StateMemory {
 public:
  static constexpr uint64_t kSlabBytes = uint64_t{32} << 20;

  // Blocks of kv_page_bytes are booked as kv, all others as recurrent. Ledger and stream outlive this.
  DeviceStateMemory(Ledger& ledger, const Stream& stream, uint64_t kv_page_bytes)
      : ledger_(ledger), stream_(stream), kv_page_bytes_(kv_page_bytes) {}
  ~DeviceStateMemory() override;

  Result<std::byte*> allocate(uint64_t bytes, uint64_t unset_bytes = 0) override;
  void release(std::byte* memory, uint64_t bytes) override;
  void zero(std::byte* to, uint64_t bytes) override;
  uint64_t free_bytes() const override;  // of the budget, and in slabs
  void copy(std::byte* to, const std::byte* from, uint64_t bytes) override;
  void read(std::byte* host, const std::byte* from, uint64_t bytes) override;
  void write(std::byte* to, const std::byte* host, uint64_t bytes) override;

  // Called where the device has less than the budget allows, so that something else there gives way. True: it did.
  void when_refused(std::function<Result<bool>()> make_room) { make_room_ = std::move(make_room); }

  // Returns slabs without blocks in use to the ledger.
  void trim();

  // The first error of the calls that cannot return one; the step that comes next reports it.
  Status failure() const;

 private:
  struct Slab {
    std::byte* memory;
    uint64_t n_blocks;
    std::vector<std::byte*> unused;
  };
  // Of one size.
  using Slabs = std::map<std::byte*, Slab>;

  Purpose purpose_of(uint64_t block_bytes) const;
  Result<Slab*> grow(Slabs& slabs, uint64_t block_bytes);
  bool makes_room(uint64_t block_bytes);
  void note(Status status);

  Ledger& ledger_;
  const Stream& stream_;
  const uint64_t kv_page_bytes_;
  std::map<uint64_t, Slabs> by_size_;
  std::function<Result<bool>()> make_room_;
  std::optional<Error> failure_;
};

}  // namespace chimere::cuda
