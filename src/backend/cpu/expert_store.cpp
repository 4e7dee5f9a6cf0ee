#include "backend/cpu/expert_store.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "backend/cpu/packed_matrix_memory.h"
#include "backend/cpu/workspace.h"
#include "base/check.h"
#include "base/platform/word_wait.h"

namespace chimere::cpu {
namespace {

// Beyond the experts of a layer in use: those of the next that are being read ahead.
constexpr uint64_t kAheadSlots = 32;
constexpr int kReaders = 8;  // reads in flight: what keeps a fast disk busy with pieces of a megabyte
constexpr int kLooks = 16;   // slots that are looked at to find one that gives way
constexpr uint32_t kJudgedGuesses = 512;
constexpr uint32_t kSkipTurns = 1 << 15;  // uses of a layer for which nothing is guessed after too many were wrong
constexpr uint32_t kFadeTurns = 512;      // uses of a layer after which its counts are halved

uint64_t least_slots(const ExpertLayout& layout) {
  const auto n = static_cast<uint64_t>(layout.n_experts);
  return n + std::min(kAheadSlots, n);
}

// By the size of an expert: what all of them take, and the least number of slots.
struct SizeClass {
  uint64_t all_bytes = 0, all_experts = 0, most_experts = 0, least_slots = 0;  // most_experts: of a layer
};
using SizeClasses = std::map<uint64_t, SizeClass>;

void add_to(SizeClasses& classes, const ExpertLayout& layout) {
  SizeClass& size = classes[layout.bytes];
  size.all_experts += static_cast<uint64_t>(layout.n_experts);
  size.all_bytes += layout.bytes * static_cast<uint64_t>(layout.n_experts);
  size.most_experts = std::max(size.most_experts, static_cast<uint64_t>(layout.n_experts));
  size.least_slots = std::max(size.least_slots, least_slots(layout));
}

uint64_t least_bytes(const SizeClasses& classes) {
  uint64_t bytes = 0;
  for (const auto& [expert_bytes, size] : classes) bytes += expert_bytes * std::min(size.least_slots, size.all_experts);
  return bytes;
}

}  // namespace

ExpertStore::ExpertStore(ReadExpert read) : read_(std::move(read)) {}
ExpertStore::~ExpertStore() = default;

Result<uint64_t> store_ram_bytes(const Program& program, const std::vector<const op::MoeFfn*>& mixtures,
                                 std::span<const MatrixId> ids, uint64_t ram_bytes) {
  uint64_t all = 0, experts = 0;
  for (const MatrixId id : ids) {
    TRY_ASSIGN(const PackedMatrix matrix, layout_of_matrix(program.matrices[id]));
    all += matrix.size_bytes();
  }
  if (ram_bytes == 0 || all <= ram_bytes) return uint64_t{0};
  SizeClasses classes;
  for (const op::MoeFfn* mixture : mixtures) {
    TRY_ASSIGN(const ExpertLayout layout, ExpertLayout::create(program, *mixture));
    for (const ExpertLayout::Part& part : layout.parts) experts += part.matrix.size_bytes();
    add_to(classes, layout);
  }
  const uint64_t others = all - experts, least = others + least_bytes(classes);
  if (experts > 0 && ram_bytes >= least) return ram_bytes - others;
  const auto gigabytes = [](uint64_t bytes) {
    char text[32];
    const auto n = static_cast<double>(bytes);
    std::snprintf(text, sizeof(text), n < 1e9 ? "%.1f MB" : "%.2f GB", n < 1e9 ? n / 1e6 : n / 1e9);
    return std::string(text);
  };
  return Error{Code::exhausted,
               "weights of " + gigabytes(all) + " do not fit into " + gigabytes(ram_bytes) + " of RAM" +
                   (experts == 0 ? ", and there are no experts among them that could stay on disk"
                                 : ", and with the experts on disk " + gigabytes(least) + " are needed: " +
                                       gigabytes(others) + " that every token uses, and the experts of one layer")};
}

Result<std::unique_ptr<ExpertStore>> ExpertStore::create(const Program& program,
                                                         const std::vector<const op::MoeFfn*>& mixtures,
                                                         uint64_t slot_bytes, const ParallelFor& parallel,
                                                         const LoadOptions& load, ReadExpert read) {
  std::unique_ptr<ExpertStore> store(new ExpertStore(std::move(read)));
  for (const op::MoeFfn* mixture : mixtures) {
    Mixture& m = store->mixtures_.emplace_back();
    TRY_ASSIGN(m.layout, ExpertLayout::create(program, *mixture));
    const auto n = static_cast<size_t>(m.layout.n_experts);
    m.slot_of.assign(n, kNone);
    m.uses.assign(n, 0);
    m.places.assign(m.layout.parts.size(), std::vector<const uint8_t*>(n));
    m.in_use.reserve(n);
  }
  TRY(store->make_shelves(slot_bytes));
  TRY(store->open_files(program, parallel, load));
  store->readers_ = std::make_unique<JobThreads>(kReaders);
  return Result<std::unique_ptr<ExpertStore>>{std::move(store)};
}

Status ExpertStore::open_files(const Program& program, const ParallelFor& parallel, const LoadOptions& load) {
  const ExpertFileOptions files{load.experts_folder, load.fingerprint};
  uint64_t total = 0, done = 0;
  const auto file_bytes = [&](const Mixture& m) {
    uint64_t bytes = 0;
    for (const ExpertLayout::Part& part : m.layout.parts) bytes += program.matrices[part.id].size_bytes();
    return bytes;
  };
  for (const Mixture& m : mixtures_) total += file_bytes(m);
  for (Mixture& m : mixtures_) {
    const uint64_t share = file_bytes(m);
    uint64_t n_packed = 0;
    const auto packed = [&] {
      ++n_packed;
      if (load.progress) load.progress(done + share * n_packed / static_cast<uint64_t>(m.layout.n_experts), total);
    };
    TRY_ASSIGN(DirectFile file, open_expert_file(program, m.layout, files, parallel, packed));
    m.file.emplace(std::move(file));
    done += share;
    for (const ExpertLayout::Part& part : m.layout.parts) {
      if (load.matrix_taken) load.matrix_taken(program.matrices[part.id]);
    }
  }
  return Ok{};
}

Status ExpertStore::make_shelves(uint64_t slot_bytes) {
  SizeClasses classes;
  uint64_t all_bytes = 0;
  for (const Mixture& m : mixtures_) {
    add_to(classes, m.layout);
    all_bytes += m.layout.bytes * static_cast<uint64_t>(m.layout.n_experts);
  }
  const uint64_t least = least_bytes(classes);
  CHECK(slot_bytes >= least && "as store_ram_bytes() says");
  // What is left beyond the least is divided as the experts' bytes are.
  const auto spare = static_cast<double>(slot_bytes - least);
  for (const auto& [expert_bytes, size] : classes) {
    const double share = spare * static_cast<double>(size.all_bytes) / static_cast<double>(all_bytes);
    const uint64_t n = std::min(
        size.all_experts, std::min(size.least_slots, size.all_experts) + static_cast<uint64_t>(share) / expert_bytes);
    Shelf& shelf = shelves_.emplace_back();
    shelf.expert_bytes = expert_bytes;
    shelf.n_ahead = std::min(kAheadSlots, n - std::min(n, size.most_experts));
    shelf.memory = allocate_weights(n * expert_bytes + DirectFile::kPage);
    if (!shelf.memory) {
      return Error{Code::exhausted,
                   "experts on disk: no memory for " + std::to_string(n * expert_bytes) + " bytes of them"};
    }
    // Small ones share a chunk with others, from a multiple of 64 on.
    const auto address = reinterpret_cast<uintptr_t>(shelf.memory.get());
    const size_t skipped = (DirectFile::kPage - address % DirectFile::kPage) % DirectFile::kPage;
    shelf.memory = std::shared_ptr<uint8_t>(shelf.memory, shelf.memory.get() + skipped);
    for (uint64_t i = 0; i < n; ++i) shelf.slots.push_back(std::make_unique<Slot>());
  }
  for (Mixture& m : mixtures_) {
    const auto found = std::find_if(shelves_.begin(), shelves_.end(),
                                    [&](const Shelf& s) { return s.expert_bytes == m.layout.bytes; });
    m.shelf = static_cast<size_t>(found - shelves_.begin());
  }
  return Ok{};
}

int ExpertStore::mixture_of(MatrixId up) const {
  for (size_t i = 0; i < mixtures_.size(); ++i) {
    for (const ExpertLayout::Part& part : mixtures_[i].layout.parts) {
      if (part.id == up) return static_cast<int>(i);
    }
  }
  return kNone;
}

std::optional<PackedMatrix> ExpertStore::matrix(MatrixId id) const {
  for (const Mixture& m : mixtures_) {
    for (size_t p = 0; p < m.layout.parts.size(); ++p) {
      if (m.layout.parts[p].id != id) continue;
      PackedMatrix matrix = m.layout.parts[p].matrix.layout();
      matrix.put_at(m.places[p].data());
      return matrix;
    }
  }
  return std::nullopt;
}

uint64_t ExpertStore::ram_bytes() const {
  uint64_t bytes = 0;
  for (const Shelf& shelf : shelves_) bytes += shelf.slots.size() * shelf.expert_bytes;
  return bytes;
}

ExpertTraffic ExpertStore::traffic() const {
  ExpertTraffic traffic;
  for (const Mixture& m : mixtures_) {
    traffic.all_bytes += m.layout.bytes * static_cast<uint64_t>(m.layout.n_experts);
    traffic.n_experts += static_cast<uint64_t>(m.layout.n_experts);
  }
  for (const Shelf& shelf : shelves_) traffic.n_slots += shelf.slots.size();
  traffic.ram_bytes = ram_bytes();
  traffic.hits = hits_;
  traffic.misses = misses_;
  traffic.read_ahead = expected_;
  traffic.bytes_read = bytes_read_;
  traffic.waited_s = static_cast<double>(waited_ns_) * 1e-9;
  return traffic;
}

uint32_t ExpertStore::chance(uint32_t below) {
  random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
  return static_cast<uint32_t>((random_ >> 32) * below >> 32);
}

uint32_t ExpertStore::uses_of(const Slot& slot) const {
  return slot.mixture == kNone ? 0
                               : mixtures_[static_cast<size_t>(slot.mixture)].uses[static_cast<size_t>(slot.expert)];
}

void ExpertStore::count_uses(Mixture& m, std::span<const int32_t> experts) {
  if (++m.turns % kFadeTurns == 0) {
    for (uint32_t& uses : m.uses) uses /= 2;
  }
  for (const int32_t e : experts) ++m.uses[static_cast<size_t>(e)];
}

size_t ExpertStore::give_way(Shelf& shelf) {
  const auto may_go = [](const Slot& slot) { return !slot.is_in_use && slot.state != kReading; };
  const auto n = static_cast<uint32_t>(shelf.slots.size());
  size_t best = n;
  const auto look_at = [&](size_t i) {
    const Slot& slot = *shelf.slots[i];
    if (!may_go(slot)) return;
    if (best == n) {
      best = i;
      return;
    }
    const Slot& other = *shelf.slots[best];
    const uint32_t uses = uses_of(slot), least = uses_of(other);
    if (uses < least || (uses == least && slot.arrival > other.arrival)) best = i;
  };
  for (int i = 0; i < kLooks; ++i) look_at(chance(n));
  for (size_t i = 0; best == n && i < n; ++i) look_at(i);
  CHECK(best < n && "there are more slots than experts in use");
  return best;
}

void ExpertStore::forget(Slot& slot) {
  if (slot.mixture == kNone) return;
  mixtures_[static_cast<size_t>(slot.mixture)].slot_of[static_cast<size_t>(slot.expert)] = kNone;
  slot.mixture = slot.expert = kNone;
  slot.state = kEmpty;
}

void ExpertStore::fetch(int mixture, int expert, bool is_guess) {
  Mixture& m = mixtures_[static_cast<size_t>(mixture)];
  Shelf& shelf = shelves_[m.shelf];
  const size_t i = shelf.n_given < shelf.slots.size() ? shelf.n_given++ : give_way(shelf);
  Slot& slot = *shelf.slots[i];
  forget(slot);
  slot.mixture = mixture;
  slot.expert = expert;
  slot.arrival = ++arrivals_;
  slot.is_guess = is_guess;
  slot.state = kReading;
  m.slot_of[static_cast<size_t>(expert)] = static_cast<int32_t>(i);
  std::byte* place = shelf.place(i);
  for (size_t p = 0; p < m.places.size(); ++p) {
    m.places[p][static_cast<size_t>(expert)] = reinterpret_cast<const uint8_t*>(place) + m.layout.parts[p].offset;
  }
  if (is_guess) ++shelf.n_reading;
  readers_->post([this, mixture, expert, is_guess, &slot, &shelf, place] {
    read(mixture, expert, slot, place);
    if (is_guess) --shelf.n_reading;
  });
}

ExpertStore::Slot& ExpertStore::slot_of(Mixture& m, int expert) {
  return *shelves_[m.shelf].slots[static_cast<size_t>(m.slot_of[static_cast<size_t>(expert)])];
}

void ExpertStore::read(int mixture, int expert, Slot& slot, std::byte* to) {
  const Mixture& m = mixtures_[static_cast<size_t>(mixture)];
  const std::span<std::byte> bytes(to, m.layout.bytes);
  const uint64_t offset = m.layout.offset_of(expert);
  Status done = read_ ? read_(mixture, offset, bytes) : m.file->read(offset, bytes);
  State state = kThere;
  if (!done) {
    // Zeros are computed with at the usual speed, and nobody sees the result.
    std::memset(to, 0, bytes.size());
    state = kFailed;
    const std::lock_guard lock(read_error_mutex_);
    read_error_ = std::move(done.error());
  }
  bytes_read_ += bytes.size();
  slot.state = state;
  wake_all(slot.state);
}

void ExpertStore::begin(int mixture, std::span<int32_t> experts) {
  Mixture& m = mixtures_[static_cast<size_t>(mixture)];
  CHECK(m.in_use.empty());
  judge_guesses();
  count_uses(m, experts);
  const auto is_here = [&](int32_t e) { return m.slot_of[static_cast<size_t>(e)] != kNone; };
  // What is left of a read that failed is no expert.
  for (const int32_t e : experts) {
    if (is_here(e) && slot_of(m, e).state == kFailed) forget(slot_of(m, e));
  }
  const auto missing = std::stable_partition(experts.begin(), experts.end(), is_here);
  std::stable_partition(experts.begin(), missing, [&](int32_t e) { return slot_of(m, e).state == kThere; });
  hits_ += static_cast<uint64_t>(missing - experts.begin());
  misses_ += static_cast<uint64_t>(experts.end() - missing);
  const auto use = [&](int32_t e) {
    Slot& slot = slot_of(m, e);
    slot.is_in_use = true;
    n_right_ += slot.is_guess;
    slot.is_guess = false;
    m.in_use.push_back(m.slot_of[static_cast<size_t>(e)]);
  };
  // First those that are here, or they would give way to the others.
  std::for_each(experts.begin(), missing, use);
  for (const int32_t e : experts.subspan(static_cast<size_t>(missing - experts.begin()))) {
    fetch(mixture, e, false);
    use(e);
  }
}

void ExpertStore::wait(int mixture, int expert) {
  Slot& slot = slot_of(mixtures_[static_cast<size_t>(mixture)], expert);
  if (slot.state != kReading) return;
  const auto start = std::chrono::steady_clock::now();
  wait_while(slot.state, kReading);
  waited_ns_ += static_cast<uint64_t>((std::chrono::steady_clock::now() - start).count());
}

void ExpertStore::end(int mixture) {
  Mixture& m = mixtures_[static_cast<size_t>(mixture)];
  for (const int32_t i : m.in_use) {
    Slot& slot = *shelves_[m.shelf].slots[static_cast<size_t>(i)];
    slot.is_in_use = false;
    if (slot.state != kFailed) continue;
    const std::lock_guard lock(read_error_mutex_);
    failure_ = *read_error_;
  }
  m.in_use.clear();
}

// No more at a time than there are slots for them: on a slow disk wrong ones would gather until those in use found none.
void ExpertStore::expect(int mixture, std::span<const int32_t> experts) {
  const Mixture& m = mixtures_[static_cast<size_t>(mixture)];
  const Shelf& shelf = shelves_[m.shelf];
  for (const int32_t e : experts) {
    if (shelf.n_reading >= shelf.n_ahead) return;
    if (m.slot_of[static_cast<size_t>(e)] != kNone) continue;
    fetch(mixture, e, true);
    ++expected_;
    ++n_guessed_;
  }
}

// A wrong guess takes a read and the place of an expert from those that are used; a right one saves some of a wait.
void ExpertStore::judge_guesses() {
  if (n_skipped_ > 0) {
    n_skipped_ = n_skipped_ == kSkipTurns ? 0 : n_skipped_ + 1;
  } else if (n_guessed_ >= kJudgedGuesses) {
    if (n_right_ * 2 < n_guessed_) n_skipped_ = 1;
    n_guessed_ = n_right_ = 0;
  }
}

Status ExpertStore::failure() {
  if (!failure_) return Ok{};
  Error error = std::move(*failure_);
  failure_.reset();
  return error;
}

}  // namespace chimere::cpu
