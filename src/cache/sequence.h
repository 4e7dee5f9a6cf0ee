// sequence.h  The memory of one sequence (KV pages and recurrent state), and exact ways to go back in it.
//
//   Sequence s = Sequence::create(executable, rollback_window);
//   Slice slice = s.begin(n);   run a batch with it;   s.commit(n);
//
// Going back is exact: the continuation equals that of a run which never went further.
//   snapshot / restore   any position that was kept. KV pages are shared and copied on write; the recurrent state is
//                        copied. A snapshot outlives its sequence and can start others.
//   rollback(n)          the last n tokens, within the window, without a snapshot of each position: the sequence keeps
//                        one checkpoint of the recurrent state and the inputs of the tokens since, and replays them.
//   serialize / parse    bytes for the disk: versioned, tied to a cache key, checksummed.
//
// Ownership: pages are shared_ptr, freed with their last holder. One thread uses a sequence at a time; the Executable
// outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"

namespace chimere {

// A block of the backend's memory, released on destruction.
class StateBlock {
 public:
  static Result<std::shared_ptr<StateBlock>> allocate(StateMemory& memory, uint64_t bytes);
  StateBlock(StateMemory& memory, std::byte* data, uint64_t bytes) : memory_(memory), data_(data), bytes_(bytes) {}
  ~StateBlock() { memory_.release(data_, bytes_); }
  StateBlock(const StateBlock&) = delete;
  StateBlock& operator=(const StateBlock&) = delete;

  std::byte* data() const { return data_; }
  float* floats() const { return reinterpret_cast<float*>(data_); }
  uint64_t size_bytes() const { return bytes_; }

 private:
  StateMemory& memory_;
  std::byte* data_;
  uint64_t bytes_;
};

using StateBlockPtr = std::shared_ptr<StateBlock>;

// The state of a sequence at one position. Cheap to copy: everything in it is shared and never written again.
struct Snapshot {
  int32_t length = 0;
  std::vector<StateBlockPtr> pages;
  StateBlockPtr recurrent;  // null when the model has no recurrent layer

  uint64_t size_bytes() const;
};

class Sequence {
 public:
  // rollback_window: how many of the last decoded tokens rollback() must be able to take back; 0 keeps nothing extra.
  static Result<Sequence> create(Executable& executable, int rollback_window = 0);

  int32_t length() const { return length_; }

  // Makes room for n more tokens and says where they go. Pages shared with a snapshot are copied first.
  Result<Slice> begin(int n_tokens);
  // Records that the slice of the last begin() was run.
  Status commit(int n_tokens);

  Result<Snapshot> snapshot() const;
  // Like snapshot(), but moves the state out: nothing is copied, and the sequence can only be destroyed afterwards.
  Snapshot take();
  Status restore(const Snapshot& snapshot);
  // What begin(n) would allocate.
  uint64_t bytes_to_begin(int n_tokens) const;
  Status rollback(int n_tokens);
  // How many tokens rollback() can take back now.
  int rollback_reach() const;

  uint64_t size_bytes() const;
  // Visits the blocks it holds, which may be shared with others.
  void for_each_block(const std::function<void(const StateBlock&)>& visit) const;

 private:
  explicit Sequence(Executable& executable) : executable_(&executable) {}
  bool is_recurrent() const { return recurrent_ != nullptr; }
  void checkpoint_here();

  Executable* executable_;
  int32_t length_ = 0;
  std::vector<StateBlockPtr> pages_;
  std::vector<std::byte*> page_pointers_;
  StateBlockPtr recurrent_;

  // Only with a rollback window: the recurrent state at position checkpoint_, and the inputs of the tokens since.
  int window_ = 0;
  int32_t checkpoint_ = 0;
  StateBlockPtr checkpoint_state_;
  StateBlockPtr records_;
  int n_records_ = 0;
};

// A snapshot as bytes for the disk. `key` ties them to what made them: model fingerprint, KV types, rotation.
Result<std::vector<std::byte>> serialize(const Snapshot& snapshot, Executable& executable, uint64_t key);
// Refuses bytes of another version, key, layout or checksum, and says why.
Result<Snapshot> parse_snapshot(std::span<const std::byte> bytes, Executable& executable, uint64_t key);

}  // namespace chimere
