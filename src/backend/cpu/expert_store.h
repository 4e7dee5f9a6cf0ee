// expert_store.h  Routed experts on disk, and the ones that are used most in RAM.
//
// A token uses a few experts of each layer. The store has room in RAM for some of all experts and a file for each layer
// (expert_file.h). Before a layer's experts are multiplied with, begin() looks where they are and starts to read the
// others, several at a time; those in RAM are computed meanwhile, and wait() stands before each of the rest.
//
// Who stays: an expert's uses are counted, and halved now and then so that old ones fade. What has to give way is the
// least used of a few that are looked at by chance; of equals the one that came last, so that a prompt, which uses all
// experts in turn, does not push everything out just before it comes round again. What is computed never depends on it.
//
// Experts of one size share slots; where layers differ in size, each size has its share of the RAM.
//
// Threads: create(), begin(), end(), expect() and failure() by one thread at a time; wait() by all workers between
// begin() and end(). The readers are threads of the store.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "backend/cpu/expert_file.h"
#include "base/job_threads.h"
#include "base/result.h"

namespace chimere::cpu {

// Reads a piece of a mixture's file. Any thread.
using ReadExpert = std::function<Status(int mixture, uint64_t offset, std::span<std::byte> to)>;

// Within ram_bytes for the matrices `ids`, those of the mixtures among them: 0 when all of them fit as they are, otherwise
// what is left for the slots of a store beside the others. Fails where that is too little.
Result<uint64_t> store_ram_bytes(const Program& program, const std::vector<const op::MoeFfn*>& mixtures,
                                 std::span<const MatrixId> ids, uint64_t ram_bytes);

class ExpertStore {
 public:
  // Packs and writes the files that are not there yet. Of `load` the folder, the fingerprint, progress, which counts the
  // experts' bytes as the model's file has them, and matrix_taken matter.
  static Result<std::unique_ptr<ExpertStore>> create(const Program& program,
                                                     const std::vector<const op::MoeFfn*>& mixtures,
                                                     uint64_t slot_bytes, const ParallelFor& parallel,
                                                     const LoadOptions& load, ReadExpert read = {});
  ~ExpertStore();
  ExpertStore(const ExpertStore&) = delete;

  // Which of the mixtures has this up-projection; kNone: none of them.
  int mixture_of(MatrixId up) const;
  // A matrix of a mixture, for products between begin() and end(). Nothing: it is none of ours.
  std::optional<PackedMatrix> matrix(MatrixId id) const;

  // These experts will be used, each named once. Puts those that are in RAM first.
  void begin(int mixture, std::span<int32_t> experts);
  void wait(int mixture, int expert);
  void end(int mixture);

  // These may be used soon: starts to read what is not in RAM. A guess costs a place and a read, no more. Also by one
  // worker between begin() and end() of another mixture.
  void expect(int mixture, std::span<const int32_t> experts);
  // Most of the experts that were read ahead lately were used then. Where not, they are tried again now and then.
  bool guesses_pay() const { return n_skipped_ == 0; }

  // What went wrong since the last call: what was computed since then is of no use.
  Status failure();

  uint64_t ram_bytes() const;
  ExpertTraffic traffic() const;

 private:
  enum State : uint32_t { kEmpty, kReading, kThere, kFailed };
  struct Slot {
    int32_t mixture = kNone, expert = kNone;
    bool is_in_use = false;
    bool is_guess = false;  // read ahead, and not used since
    uint64_t arrival = 0;
    std::atomic<uint32_t> state{kEmpty};
  };
  // Slots of experts of one size.
  struct Shelf {
    uint64_t expert_bytes = 0;
    std::shared_ptr<uint8_t> memory;
    std::vector<std::unique_ptr<Slot>> slots;
    size_t n_given = 0;                  // slots in front that have been used
    uint64_t n_ahead = 0;                // the most that may be read ahead at a time
    std::atomic<uint64_t> n_reading{0};  // ahead
    std::byte* place(size_t slot) const { return reinterpret_cast<std::byte*>(memory.get()) + slot * expert_bytes; }
  };
  struct Mixture {
    ExpertLayout layout;
    std::optional<DirectFile> file;
    size_t shelf = 0;
    std::vector<int32_t> slot_of;                     // [n_experts], kNone: on disk alone
    std::vector<uint32_t> uses;                       // [n_experts]
    std::vector<std::vector<const uint8_t*>> places;  // [parts][n_experts]
    std::vector<int32_t> in_use;                      // slots, between begin() and end()
    uint32_t turns = 0;
  };

  explicit ExpertStore(ReadExpert read);
  Status open_files(const Program& program, const ParallelFor& parallel, const LoadOptions& load);
  Status make_shelves(uint64_t slot_bytes);
  void count_uses(Mixture& m, std::span<const int32_t> experts);
  // Gives the expert a slot, and begins to read it.
  void fetch(int mixture, int expert, bool is_guess);
  void forget(Slot& slot);
  void judge_guesses();
  size_t give_way(Shelf& shelf);
  Slot& slot_of(Mixture& m, int expert);
  void read(int mixture, int expert, Slot& slot, std::byte* to);
  uint32_t uses_of(const Slot& slot) const;
  uint32_t chance(uint32_t below);

  const ReadExpert read_;  // in place of the files' own, for tests of disks that fail
  std::vector<Mixture> mixtures_;
  uint32_t n_guessed_ = 0, n_right_ = 0, n_skipped_ = 0;  // lately
  std::deque<Shelf> shelves_;
  uint64_t arrivals_ = 0;
  uint64_t random_ = 0x9e3779b97f4a7c15;
  std::mutex read_error_mutex_;
  std::optional<Error> read_error_;  // the last one
  std::optional<Error> failure_;
  std::atomic<uint64_t> hits_{0}, misses_{0}, expected_{0}, bytes_read_{0}, waited_ns_{0};
  std::unique_ptr<JobThreads> readers_;  // last: they use the rest
};

}  // namespace chimere::cpu
