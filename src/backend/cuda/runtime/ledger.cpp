// ledger.cpp  Accounts of device memory.
#include "backend/cuda/runtime/ledger.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "backend/cuda/runtime/device.h"
#include "backend/cuda/runtime/stream.h"
#include "base/check.h"

namespace chimere::cuda {
namespace {

// The driver frees 20 GB of pinned memory in 1.6 s (H200) and starts no kernel meanwhile: what was kept of a sleep is
// freed in pieces, between steps of the answers that follow.
constexpr uint64_t kPieceBytes = uint64_t{32} << 20;
constexpr std::chrono::milliseconds kDropPause{10};

}  // namespace

const char* purpose_name(Purpose purpose) {
  switch (purpose) {
    case Purpose::weights: return "weights";
    case Purpose::adapters: return "adapters";
    case Purpose::kv: return "kv";
    case Purpose::recurrent: return "recurrent";
    case Purpose::scratch: return "scratch";
    case Purpose::graphs: return "graphs";
    case Purpose::context: return "context";
  }
  return "";
}

Ledger::~Ledger() { CHECK(blocks_.empty()); }

uint64_t Ledger::taken_bytes(uint64_t bytes) {
  const uint64_t granule = bytes >= (1 << 20) ? 2 << 20 : 512;
  const uint64_t most = ~uint64_t{0} / granule * granule;
  return bytes > most ? most : (bytes + granule - 1) / granule * granule;
}

Status Ledger::add(Purpose purpose, uint64_t bytes) {
  if (total_.used > budget_bytes_ || bytes > budget_bytes_ - total_.used) {
    return Error{Code::exhausted, "device memory: " + bytes_text(bytes) + " for " + purpose_name(purpose) +
                                      " do not fit into the budget: " + text_locked()};
  }
  for (Entry* entry : {&entries_[static_cast<int>(purpose)], &total_}) {
    entry->used += bytes;
    entry->peak = std::max(entry->peak, entry->used);
  }
  return Ok{};
}

void Ledger::subtract(Purpose purpose, uint64_t bytes) {
  Entry& entry = entries_[static_cast<int>(purpose)];
  CHECK(bytes <= entry.used);
  entry.used -= bytes;
  total_.used -= bytes;
}

Result<std::byte*> Ledger::allocate(Purpose purpose, uint64_t bytes) {
  const uint64_t taken = taken_bytes(bytes);
  std::lock_guard lock(mutex_);
  TRY(add(purpose, taken));
  auto memory = allocate_device(taken);
  if (!memory) {
    subtract(purpose, taken);
    memory.error().message += "; the ledger has " + text_locked();
    return std::move(memory.error());
  }
  blocks_[static_cast<std::byte*>(*memory)].bytes = taken;
  return static_cast<std::byte*>(*memory);
}

void Ledger::release(Purpose purpose, std::byte* memory, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const auto block = blocks_.find(memory);
  CHECK(block != blocks_.end() && block->second.bytes == taken_bytes(bytes));
  if (block->second.is_backed) {
    free_device(memory, block->second.bytes);
  } else {
    free_unbacked(memory, block->second.bytes);
  }
  for (void* piece : block->second.kept) free_pinned(piece);
  subtract(purpose, block->second.bytes);
  blocks_.erase(block);
}

Status Ledger::put_away(std::byte* memory, Block& block, const Stream& stream) {
  for (uint64_t at = 0; at < block.bytes; at += kPieceBytes) {
    const uint64_t n = std::min(kPieceBytes, block.bytes - at);
    TRY_ASSIGN(void* piece, allocate_pinned(n));
    block.kept.push_back(piece);
    TRY(stream.copy(piece, memory + at, n));
  }
  TRY(stream.synchronize());
  TRY(unback(memory, block.bytes));
  block.is_backed = false;
  return Ok{};
}

Result<uint64_t> Ledger::sleep(const Stream& stream) {
  dropper_ = {};
  std::lock_guard lock(mutex_);
  uint64_t given = 0;
  for (auto& [memory, block] : blocks_) {
    if (!can_unback(block.bytes)) continue;
    if (Status away = put_away(memory, block, stream); !away) {
      TRY(wake_locked(stream));
      return std::move(away.error());
    }
    given += block.bytes;
  }
  return given;
}

Status Ledger::wake(const Stream& stream) {
  std::lock_guard lock(mutex_);
  return wake_locked(stream);
}

Status Ledger::wake_locked(const Stream& stream) {
  for (auto& [memory, block] : blocks_) {
    if (block.is_backed) continue;
    TRY(back(memory, block.bytes));
    block.is_backed = true;
    for (size_t i = 0; i < block.kept.size(); ++i) {
      const uint64_t at = i * kPieceBytes;
      TRY(stream.copy(memory + at, block.kept[i], std::min(kPieceBytes, block.bytes - at)));
    }
  }
  TRY(stream.synchronize());
  drop_kept();
  return Ok{};
}

void Ledger::drop_kept() {
  std::vector<void*> kept;
  for (auto& [memory, block] : blocks_) {
    kept.insert(kept.end(), block.kept.begin(), block.kept.end());
    block.kept.clear();
  }
  dropper_ = std::jthread([kept = std::move(kept)](const std::stop_token& is_wanted) {
    for (void* piece : kept) {
      free_pinned(piece);
      if (!is_wanted.stop_requested()) std::this_thread::sleep_for(kDropPause);
    }
  });
}

Status Ledger::charge(Purpose purpose, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  return add(purpose, bytes);
}

void Ledger::discharge(Purpose purpose, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  subtract(purpose, bytes);
}

uint64_t Ledger::used_bytes() const {
  std::lock_guard lock(mutex_);
  return total_.used;
}

uint64_t Ledger::used_bytes(Purpose purpose) const {
  std::lock_guard lock(mutex_);
  return entries_[static_cast<int>(purpose)].used;
}

uint64_t Ledger::peak_bytes() const {
  std::lock_guard lock(mutex_);
  return total_.peak;
}

uint64_t Ledger::peak_bytes(Purpose purpose) const {
  std::lock_guard lock(mutex_);
  return entries_[static_cast<int>(purpose)].peak;
}

uint64_t Ledger::free_bytes() const {
  std::lock_guard lock(mutex_);
  return budget_bytes_ - total_.used;
}

std::string Ledger::text() const {
  std::lock_guard lock(mutex_);
  return text_locked();
}

std::string Ledger::text_locked() const {
  std::string text;
  for (int i = 0; i < kPurposes; i++) {
    if (entries_[i].used == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(purpose_name(static_cast<Purpose>(i))) + " " +
            bytes_text(entries_[i].used);
  }
  return (text.empty() ? "nothing in use" : text) + "; " + bytes_text(total_.used) + " of " + bytes_text(budget_bytes_);
}

}  // namespace chimere::cuda
