// ledger.cpp  Accounts of device memory.
#include "backend/cuda/runtime/ledger.h"

#include <algorithm>

#include "backend/cuda/runtime/device.h"
#include "base/check.h"

namespace chimere::cuda {

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

Ledger::~Ledger() { CHECK(n_allocations_ == 0); }

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
  n_allocations_++;
  return static_cast<std::byte*>(*memory);
}

void Ledger::release(Purpose purpose, std::byte* memory, uint64_t bytes) {
  free_device(memory);
  std::lock_guard lock(mutex_);
  subtract(purpose, taken_bytes(bytes));
  n_allocations_--;
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
