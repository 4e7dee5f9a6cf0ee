#include "cache/sequence.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace chimere {
namespace {

int pages_for(int32_t length) { return (length + kPageTokens - 1) / kPageTokens; }

// What the trunk writes of a page: the layers of a draft pass come behind. A drafter's are written by the trunk itself.
uint64_t trunk_page_bytes(const Executable& executable) {
  const StateLayout& layout = executable.layout();
  const Program& program = executable.program();
  const bool has_own_layers = program.trunk_end && !program.draft_blocks;
  const size_t n_layers = has_own_layers ? program.trunk_end->kv_layers : layout.kv().size();
  return n_layers < layout.kv().size() ? layout.k_offset(static_cast<int>(n_layers), 0) : layout.page_bytes();
}

}  // namespace

Result<StateBlockPtr> StateBlock::allocate(StateMemory& memory, uint64_t bytes, uint64_t used_bytes) {
  TRY_ASSIGN(std::byte * data, memory.allocate(bytes, bytes - used_bytes));
  return Result<StateBlockPtr>{std::make_shared<StateBlock>(memory, data, bytes, used_bytes)};
}

Result<StateBlockPtr> StateBlock::copy_of(const StateBlock& other) {
  TRY_ASSIGN(std::byte * data, other.memory_.allocate(other.bytes_, other.bytes_));
  other.memory_.copy(data, other.data_, other.used_bytes_);
  return Result<StateBlockPtr>{std::make_shared<StateBlock>(other.memory_, data, other.bytes_, other.used_bytes_)};
}

void StateBlock::use_all() {
  if (used_bytes_ == bytes_) return;
  memory_.zero(data_ + used_bytes_, bytes_ - used_bytes_);
  used_bytes_ = bytes_;
}

void StateBlock::read(std::byte* host) const {
  memory_.read(host, data_, used_bytes_);
  std::fill(host + used_bytes_, host + bytes_, std::byte{0});
}

uint64_t Snapshot::size_bytes() const {
  uint64_t bytes = recurrent ? recurrent->size_bytes() : 0;
  for (const StateBlockPtr& page : pages) bytes += page->size_bytes();
  return bytes;
}

Result<Sequence> Sequence::create(Executable& executable) {
  Sequence s(executable);
  const uint64_t bytes = executable.layout().recurrent_floats() * sizeof(float);
  if (bytes > 0) {
    TRY_ASSIGN(s.recurrent_, StateBlock::allocate(executable.memory(), bytes));
  }
  return Result<Sequence>{std::move(s)};
}

uint64_t Sequence::record_bytes() const {
  return static_cast<uint64_t>(ReplayLayout(executable_->layout()).floats_per_token) * sizeof(float) * kDecodeTokens;
}

Result<Slice> Sequence::begin(int n_tokens) {
  is_draft_ = false;
  n_extended_ = 0;
  return begin_at(length_, n_tokens);
}

// It reads its layers of all positions before, those that it has not seen, too.
Result<Slice> Sequence::begin_pass(int32_t pos, int n_tokens) {
  TRY_ASSIGN(Slice slice, begin_at(pos, n_tokens));
  for (const StateBlockPtr& page : pages_) page->use_all();
  return slice;
}

Result<Slice> Sequence::begin_at(int32_t pos, int n_tokens) {
  CHECK(n_tokens > 0 && pos >= 0);
  StateMemory& memory = executable_->memory();
  const uint64_t page_bytes = executable_->layout().page_bytes();
  const bool has_kv = page_bytes > 0;
  if (has_kv) {
    const int end = pages_for(pos + n_tokens);
    for (int i = pos / kPageTokens; i < std::min(end, static_cast<int>(pages_.size())); ++i) {
      if (pages_[i].use_count() == 1) continue;
      TRY_ASSIGN(pages_[i], StateBlock::copy_of(*pages_[i]));
    }
    while (static_cast<int>(pages_.size()) < end) {
      TRY_ASSIGN(StateBlockPtr page, StateBlock::allocate(memory, page_bytes, trunk_page_bytes(*executable_)));
      pages_.push_back(std::move(page));
    }
    page_pointers_.clear();
    for (const StateBlockPtr& page : pages_) page_pointers_.push_back(page->data());
  }

  Slice slice;
  slice.pos = pos;
  slice.n_tokens = n_tokens;
  slice.state.kv_pages = page_pointers_.data();
  slice.state.recurrent = recurrent_ ? recurrent_->floats() : nullptr;
  return slice;
}

Result<Slice> Sequence::begin_draft(int n_tokens, bool is_certain) {
  CHECK(n_tokens <= kDecodeTokens);
  StateMemory& memory = executable_->memory();
  if (!has_draft_space()) {
    DraftSpace space;
    TRY_ASSIGN(space.kept, StateBlock::allocate(memory, recurrent_->size_bytes()));
    TRY_ASSIGN(space.records, StateBlock::allocate(memory, record_bytes()));
    draft_ = std::move(space);
  }
  TRY_ASSIGN(Slice slice, begin(n_tokens));
  is_draft_ = true;
  n_certain_ = is_certain && n_tokens > 1 && executable_->splits_drafts() ? 1 : 0;
  if (is_recurrent()) {
    if (n_certain_ > 0) {
      slice.state.recurrent_ahead = draft_.kept->floats();
    } else {
      memory.copy(draft_.kept->data(), recurrent_->data(), recurrent_->size_bytes());
    }
    slice.state.replay = draft_.records->floats();
  }
  return slice;
}

Result<Slice> Sequence::extend_draft(int n_tokens) {
  CHECK(n_draft_ > 0 && n_draft_ + n_tokens <= kDecodeTokens);
  TRY_ASSIGN(Slice slice, begin(n_tokens));
  is_draft_ = true;
  n_extended_ = n_draft_;
  if (is_recurrent()) {
    slice.state.replay = draft_.records->floats() + n_draft_ * ReplayLayout(executable_->layout()).floats_per_token;
  }
  return slice;
}

Status Sequence::commit(int n_tokens) {
  length_ += n_tokens;
  n_draft_ = is_draft_ ? n_extended_ + n_tokens : 0;
  // The first token left its state where the sequence's was, the last one in the other block.
  if (is_draft_ && n_extended_ == 0 && n_certain_ > 0 && is_recurrent()) std::swap(recurrent_, draft_.kept);
  return Ok{};
}

Result<Snapshot> Sequence::snapshot() const {
  Snapshot s;
  s.length = length_;
  s.pages.assign(pages_.begin(), pages_.begin() + std::min<size_t>(pages_.size(), pages_for(length_)));
  if (is_recurrent()) {
    TRY_ASSIGN(s.recurrent, StateBlock::copy_of(*recurrent_));
  }
  return Result<Snapshot>{std::move(s)};
}

Snapshot Sequence::take() {
  pages_.resize(std::min<size_t>(pages_.size(), pages_for(length_)));
  return {length_, std::move(pages_), std::move(recurrent_)};
}

uint64_t Sequence::bytes_to_begin(int n_tokens) const { return bytes_to_begin_pass(length_, n_tokens); }

uint64_t Sequence::bytes_to_begin_pass(int32_t pos, int n_tokens) const {
  const size_t have = pages_.size(), need = static_cast<size_t>(pages_for(pos + n_tokens));
  uint64_t pages = need - std::min(have, need);
  for (size_t i = static_cast<size_t>(pos / kPageTokens); i < std::min(have, need); ++i) {
    pages += pages_[i].use_count() > 1 ? 1 : 0;
  }
  return pages * executable_->layout().page_bytes();
}

uint64_t Sequence::bytes_to_begin_draft(int n_tokens) const {
  return bytes_to_begin(n_tokens) + (has_draft_space() ? 0 : recurrent_->size_bytes() + record_bytes());
}

DraftSpace Sequence::take_draft_space() {
  n_draft_ = 0;
  return std::exchange(draft_, {});
}

Status Sequence::restore(const Snapshot& snapshot) {
  if (is_recurrent() != (snapshot.recurrent != nullptr) ||
      (is_recurrent() && snapshot.recurrent->size_bytes() != recurrent_->size_bytes())) {
    return Error{Code::invalid_argument, "the snapshot is of another model"};
  }
  const uint64_t page_bytes = executable_->layout().page_bytes();
  for (const StateBlockPtr& page : snapshot.pages) {
    if (page->size_bytes() != page_bytes) {
      return Error{Code::invalid_argument, "the snapshot is of another model or cache format: expected pages of " +
                                               std::to_string(page_bytes) + " bytes, found " +
                                               std::to_string(page->size_bytes())};
    }
  }
  length_ = snapshot.length;
  pages_ = snapshot.pages;
  if (is_recurrent()) {
    executable_->memory().copy(recurrent_->data(), snapshot.recurrent->data(), recurrent_->size_bytes());
  }
  n_draft_ = 0;
  return Ok{};
}

int Sequence::rollback_reach() const { return is_recurrent() ? std::max(n_draft_ - n_certain_, 0) : length_; }

Status Sequence::rollback(int n_tokens) {
  if (n_tokens < 0 || n_tokens > rollback_reach()) {
    return Error{Code::invalid_argument, "rollback of " + std::to_string(n_tokens) + " tokens: at most " +
                                             std::to_string(rollback_reach()) + " can be taken back here"};
  }
  if (n_tokens == 0) return Ok{};
  if (is_recurrent()) {
    // What was kept becomes the state; the other one is written over by the next draft.
    std::swap(recurrent_, draft_.kept);
    if (const int n_replayed = n_draft_ - n_tokens - n_certain_; n_replayed > 0) {
      const float* records =
          draft_.records->floats() + n_certain_ * ReplayLayout(executable_->layout()).floats_per_token;
      TRY(executable_->replay(recurrent_->floats(), records, n_replayed));
    }
    n_draft_ = 0;
  }
  length_ -= n_tokens;
  pages_.resize(std::min<size_t>(pages_.size(), pages_for(length_)));
  return Ok{};
}

uint64_t Sequence::size_bytes() const {
  uint64_t bytes = 0;
  for_each_block([&](const StateBlock& block) { bytes += block.size_bytes(); });
  return bytes;
}

void Sequence::for_each_block(const std::function<void(const StateBlock&)>& visit) const {
  for (const StateBlockPtr& page : pages_) visit(*page);
  for (const StateBlockPtr& block : {recurrent_, draft_.kept, draft_.records}) {
    if (block) visit(*block);
  }
}

}  // namespace chimere
