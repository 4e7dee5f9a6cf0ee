// state_memory.cpp  Slabs of state blocks.
#include "backend/cuda/runtime/state_memory.h"

#include <algorithm>

#include "base/check.h"

namespace chimere::cuda {

namespace {

uint64_t block_bytes_of(uint64_t bytes) { return (std::max<uint64_t>(bytes, 1) + 255) / 256 * 256; }

}  // namespace

DeviceStateMemory::~DeviceStateMemory() {
  note(stream_.synchronize());  // nothing may still read what is freed
  trim();
  for (const auto& [block_bytes, slabs] : by_size_) CHECK(slabs.empty() && "a state block outlives its memory");
}

Purpose DeviceStateMemory::purpose_of(uint64_t block_bytes) const {
  return block_bytes == block_bytes_of(kv_page_bytes_) ? Purpose::kv : Purpose::recurrent;
}

Result<DeviceStateMemory::Slab*> DeviceStateMemory::grow(Slabs& slabs, uint64_t block_bytes) {
  // A whole slab if there is room, else what there is, down to one block.
  auto attempt = [&](uint64_t n_blocks) -> Result<Slab*> {
    TRY_ASSIGN(std::byte * memory, ledger_.allocate(purpose_of(block_bytes), n_blocks * block_bytes));
    Slab slab{memory, n_blocks, {}};
    for (uint64_t i = n_blocks; i-- > 0;) slab.unused.push_back(memory + i * block_bytes);
    return &slabs.emplace(memory, std::move(slab)).first->second;
  };
  for (uint64_t n_blocks = std::max<uint64_t>(kSlabBytes / block_bytes, 1); n_blocks > 1; n_blocks /= 2) {
    if (auto slab = attempt(n_blocks)) return slab;
  }
  if (auto slab = attempt(1)) return slab;
  // Other sizes may sit on slabs they do not use. `slabs` itself has none to spare, or we would not be here.
  trim();
  return attempt(1);
}

bool DeviceStateMemory::makes_room(uint64_t block_bytes) {
  if (!make_room_ || ledger_.free_bytes() < Ledger::taken_bytes(block_bytes)) return false;
  Result<bool> made = make_room_();
  if (made) return *made;
  note(std::move(made.error()));
  return false;
}

Result<std::byte*> DeviceStateMemory::allocate(uint64_t bytes, uint64_t unset_bytes) {
  const uint64_t block_bytes = block_bytes_of(bytes);
  Slabs& slabs = by_size_[block_bytes];
  const auto open = std::find_if(slabs.begin(), slabs.end(), [](const auto& s) { return !s.second.unused.empty(); });
  Slab* slab = open != slabs.end() ? &open->second : nullptr;
  if (!slab) {
    auto grown = grow(slabs, block_bytes);
    while (!grown && makes_room(block_bytes)) grown = grow(slabs, block_bytes);
    if (!grown) {
      grown.error().message = "sequence state: " + grown.error().message;
      return std::move(grown.error());
    }
    slab = *grown;
  }
  std::byte* block = slab->unused.back();
  slab->unused.pop_back();
  if (Status zeroed = stream_.zero(block, bytes - unset_bytes); !zeroed) {
    release(block, bytes);
    return std::move(zeroed.error());
  }
  return block;
}

void DeviceStateMemory::release(std::byte* memory, uint64_t bytes) {
  if (!memory) return;
  const auto slabs = by_size_.find(block_bytes_of(bytes));
  CHECK(slabs != by_size_.end());
  auto slab = slabs->second.upper_bound(memory);
  CHECK(slab != slabs->second.begin());
  --slab;
  CHECK(memory < slab->second.memory + slab->second.n_blocks * slabs->first);
  slab->second.unused.push_back(memory);
}

void DeviceStateMemory::zero(std::byte* to, uint64_t bytes) { note(stream_.zero(to, bytes)); }

uint64_t DeviceStateMemory::free_bytes() const {
  uint64_t bytes = ledger_.free_bytes();
  for (const auto& [block_bytes, slabs] : by_size_) {
    for (const auto& slab : slabs) bytes += slab.second.unused.size() * block_bytes;
  }
  return bytes;
}

void DeviceStateMemory::copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  note(stream_.copy(to, from, bytes));
}

void DeviceStateMemory::read(std::byte* host, const std::byte* from, uint64_t bytes) {
  note(stream_.copy(host, from, bytes));
  note(stream_.synchronize());
}

void DeviceStateMemory::write(std::byte* to, const std::byte* host, uint64_t bytes) {
  note(stream_.copy(to, host, bytes));
  note(stream_.synchronize());
}

void DeviceStateMemory::trim() {
  for (auto& [block_bytes, slabs] : by_size_) {
    for (auto slab = slabs.begin(); slab != slabs.end();) {
      if (slab->second.unused.size() == slab->second.n_blocks) {
        // A kernel given to the stream may still use a block that its owner has released.
        note(stream_.synchronize());
        ledger_.release(purpose_of(block_bytes), slab->second.memory, slab->second.n_blocks * block_bytes);
        slab = slabs.erase(slab);
      } else {
        ++slab;
      }
    }
  }
}

void DeviceStateMemory::note(Status status) {
  if (!status && !failure_) failure_ = std::move(status.error());
}

Status DeviceStateMemory::failure() const {
  if (failure_) return *failure_;
  return Ok{};
}

}  // namespace chimere::cuda
