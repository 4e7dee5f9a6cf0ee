// sequence.h  The memory of one sequence (KV pages and recurrent state), and exact ways to go back in it.
//
//   Sequence s = Sequence::create(executable);
//   Slice slice = s.begin(n);   run a batch with it;   s.commit(n);
//
// Going back is exact: the continuation equals that of a run which never went further.
//   snapshot / restore   any position that was kept. KV pages are shared and copied on write; the recurrent state is
//                        copied. A snapshot outlives its sequence and can start others.
//   rollback(n)          the last n tokens of a draft, without a snapshot of each position: begin_draft() keeps the
//                        recurrent state before the slice and records its inputs; those that stay are replayed. Of a
//                        draft whose first token is certain the state behind that one is kept instead.
//   serialize / parse    bytes for the disk: versioned, tied to a cache key, checksummed.
//
// Ownership: pages are shared_ptr, freed with their last holder. One thread uses a sequence at a time; the Executable
// outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"

namespace chimere {

// A block of the backend's memory, released on destruction. What is behind its used bytes may hold anything: layers of a
// draft pass in a page of which it has seen nothing are neither zeroed nor copied.
class StateBlock {
 public:
  static Result<std::shared_ptr<StateBlock>> allocate(StateMemory& memory, uint64_t bytes) {
    return allocate(memory, bytes, bytes);
  }
  // Used bytes are zeros.
  static Result<std::shared_ptr<StateBlock>> allocate(StateMemory& memory, uint64_t bytes, uint64_t used_bytes);
  // One with the same contents.
  static Result<std::shared_ptr<StateBlock>> copy_of(const StateBlock& other);
  StateBlock(StateMemory& memory, std::byte* data, uint64_t bytes, uint64_t used_bytes)
      : memory_(memory), data_(data), bytes_(bytes), used_bytes_(used_bytes) {}
  ~StateBlock() { memory_.release(data_, bytes_); }
  StateBlock(const StateBlock&) = delete;
  StateBlock& operator=(const StateBlock&) = delete;

  std::byte* data() const { return data_; }
  float* floats() const { return reinterpret_cast<float*>(data_); }
  uint64_t size_bytes() const { return bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  // What is not used yet becomes zeros.
  void use_all();
  // All bytes; zeros in place of what is not used.
  void read(std::byte* host) const;

 private:
  StateMemory& memory_;
  std::byte* data_;
  uint64_t bytes_, used_bytes_;
};

using StateBlockPtr = std::shared_ptr<StateBlock>;

// The state of a sequence at one position. Cheap to copy: everything in it is shared and never written again.
struct Snapshot {
  int32_t length = 0;
  std::vector<StateBlockPtr> pages;
  StateBlockPtr recurrent;  // null when the model has no recurrent layer

  uint64_t size_bytes() const;
};

// What drafts of a sequence with recurrent layers need: the state to go back to, and the inputs of its tokens. Empty: none.
struct DraftSpace {
  StateBlockPtr kept;
  StateBlockPtr records;

  uint64_t size_bytes() const { return records ? kept->size_bytes() + records->size_bytes() : 0; }
};

class Sequence {
 public:
  static Result<Sequence> create(Executable& executable);

  int32_t length() const { return length_; }

  // Makes room for n more tokens and says where they go. Pages shared with a snapshot are copied first.
  Result<Slice> begin(int n_tokens);
  // The same for tokens that may be taken back once they were run. The first draft of a sequence with recurrent layers
  // allocates a second state and the records. is_certain: the first of them stays, whatever becomes of the others; where
  // the backend can, nothing is copied then, and nothing replayed when the others go. REQUIRES: n_tokens <= kDecodeTokens.
  Result<Slice> begin_draft(int n_tokens, bool is_certain = false);
  // More tokens of the draft that was committed last, to be taken back together with it.
  // REQUIRES: there is one, nothing was begun since, and both have at most kDecodeTokens.
  Result<Slice> extend_draft(int n_tokens);
  // Where positions [pos, pos + n_tokens) lie for a draft pass (Batch::draft_hidden), which has a layer of its own in the
  // same pages: it may go over positions again, and beyond the length, which it does not change. Pages shared with a
  // snapshot are copied first. REQUIRES: the pass is run before anything else is begun.
  Result<Slice> begin_pass(int32_t pos, int n_tokens);
  // Records that the slice of the last begin() was run.
  Status commit(int n_tokens);

  Result<Snapshot> snapshot() const;
  // Like snapshot(), but moves the state out: nothing is copied, and the sequence can only be destroyed afterwards.
  Snapshot take();
  Status restore(const Snapshot& snapshot);
  // What begin(n) and begin_draft(n) would allocate.
  uint64_t bytes_to_begin(int n_tokens) const;
  uint64_t bytes_to_begin_draft(int n_tokens) const;
  uint64_t bytes_to_begin_pass(int32_t pos, int n_tokens) const;
  // Space for drafts that another sequence of the executable no longer needs: to allocate it costs as much as a step of
  // a small model. Taking it ends what can be taken back. REQUIRES: no draft is begun and not committed.
  bool has_draft_space() const { return !is_recurrent() || draft_.records != nullptr; }
  uint64_t draft_bytes() const { return draft_.size_bytes(); }
  void give_draft_space(DraftSpace space) { draft_ = std::move(space); }
  DraftSpace take_draft_space();
  // REQUIRES: nothing was begun since the draft was committed.
  Status rollback(int n_tokens);
  // How many tokens rollback() can take back now: those of the draft that was committed last, once, without a certain
  // one; all of them where no layer is recurrent.
  int rollback_reach() const;

  uint64_t size_bytes() const;
  // Visits the blocks it holds, which may be shared with others.
  void for_each_block(const std::function<void(const StateBlock&)>& visit) const;

 private:
  explicit Sequence(Executable& executable) : executable_(&executable) {}
  bool is_recurrent() const { return recurrent_ != nullptr; }
  uint64_t record_bytes() const;
  Result<Slice> begin_at(int32_t pos, int n_tokens);

  Executable* executable_;
  int32_t length_ = 0;
  std::vector<StateBlockPtr> pages_;
  std::vector<std::byte*> page_pointers_;
  StateBlockPtr recurrent_;

  DraftSpace draft_;       // only once there was a draft
  int n_draft_ = 0;        // tokens of the last slice, if it was a draft that was committed and not yet rolled back
  int n_extended_ = 0;     // of the draft that what was begun last extends
  bool is_draft_ = false;  // what was begun last is one
  int n_certain_ = 0;      // 1: the state behind the first token of the last draft is kept, else that before it
};

// A snapshot as bytes for the disk. `key` ties them to what made them: model fingerprint, KV types, rotation.
Result<std::vector<std::byte>> serialize(const Snapshot& snapshot, Executable& executable, uint64_t key);
// Refuses bytes of another version, key, layout or checksum, and says why.
Result<Snapshot> parse_snapshot(std::span<const std::byte> bytes, Executable& executable, uint64_t key);

}  // namespace chimere
