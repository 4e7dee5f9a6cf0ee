// drawing.cpp  Packing what requests ask for, and unpacking what was drawn.
#include "backend/cuda/drawing.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "backend/cuda/kernels/sampling/best_of_part.h"
#include "base/check.h"
#include "base/relax.h"

namespace chimere::cuda {
namespace {

// Rows that are drawn from at a time. A row takes two arrays of the vocabulary: no more than a sixty-fourth of what is
// left for all of them.
int choose_scratch_rows(const Ledger& ledger, int n_vocab) {
  int rows = 32;
  while (rows > 1 && sample_scratch_bytes(n_vocab, rows) > ledger.free_bytes() / 64) rows /= 2;
  return rows;
}

constexpr size_t kFirstBytes = size_t{1} << 20;

constexpr size_t padded(size_t bytes) { return (bytes + 15) / 16 * 16; }

// The part of the history that penalties look at: the window they share begins at the row's first use of it.
int32_t history_start(const SampleRow& row) { return std::min(row.counts_start, row.dry_start); }

}  // namespace

Result<Drawing> Drawing::create(Ledger& ledger, const Stream& stream, int n_vocab,
                                std::span<const int32_t> suppressed) {
  TRY_ASSIGN(Parcel parcel, Parcel::create(ledger, kFirstBytes));
  Drawing d(std::move(parcel), n_vocab);
  std::vector<int32_t> ids;
  std::vector<uint64_t> bits((static_cast<size_t>(n_vocab) + 63) / 64);
  for (const int32_t id : suppressed) {
    if (id < 0 || id >= n_vocab) continue;
    ids.push_back(id);
    bits[id / 64] |= uint64_t{1} << (id % 64);
  }
  d.n_suppressed_ = static_cast<int>(ids.size());
  const Purpose purpose = Purpose::scratch;
  TRY_ASSIGN(d.suppressed_, DeviceBuffer<int32_t>::create(ledger, purpose, ids.size()));
  TRY_ASSIGN(d.suppressed_bits_, DeviceBuffer<uint64_t>::create(ledger, purpose, bits.size()));
  d.scratch_rows_ = choose_scratch_rows(ledger, n_vocab);
  const size_t scratch_bytes = sample_scratch_bytes(n_vocab, d.scratch_rows_);
  TRY_ASSIGN(d.scratch_, DeviceBuffer<std::byte>::create(ledger, purpose, scratch_bytes));
  TRY_ASSIGN(d.sampled_, PinnedBuffer<SampledRow>::create(kMaxRows));
  TRY_ASSIGN(d.top_, PinnedBuffer<TokenLogprob>::create(kMaxRows * kMaxTopLogprobs));
  if (!ids.empty()) TRY(d.suppressed_.write(stream, ids));
  TRY(d.suppressed_bits_.write(stream, bits));
  TRY(d.scratch_.zero(stream));
  TRY(stream.synchronize());
  return Result<Drawing>{std::move(d)};
}

uint64_t Drawing::least_device_bytes(int n_vocab) {
  const auto n = static_cast<uint64_t>(n_vocab);
  return Parcel::device_bytes(kFirstBytes) + Ledger::taken_bytes((n + 63) / 64 * sizeof(uint64_t)) +
         Ledger::taken_bytes(sample_scratch_bytes(n_vocab, 1));
}

Result<DrawShape> Drawing::stage(std::span<const Draw* const> draws, std::span<int32_t* const> accept_into) {
  CHECK(draws.size() <= kMaxRows);
  const auto n = static_cast<int>(draws.size());
  packed_.resize(draws.size());
  positions_.resize(draws.size());
  size_t bytes = padded(sizeof(SampleRow) * draws.size());
  SampleNeeds needs;
  for (int i = 0; i < n; ++i) {
    const Draw& draw = *draws[i];
    PackedSampleRow& packed = packed_[i];
    positions_[i] = draw.position;
    if (draw.params == nullptr) {
      // Nobody looks at what comes out; a forced row without figures costs least.
      packed = {};
      packed.row.forced = 0;
      continue;
    }
    const size_t n_history = draw.state->tokens().size() + draw.ahead.size();
    packed = pack_sample_row(*draw.params, draw.inputs, n_vocab_, static_cast<int32_t>(n_history),
                             static_cast<int32_t>(draw.state->n_prompt()), draw.position);
    needs.add(packed.needs);
    bytes += padded(packed.bias.size() * sizeof(TokenBias)) + padded(packed.memory.size() * sizeof(MemoryEntry)) +
             padded(packed.dry_penalties.size() * sizeof(float)) +
             padded(packed.dry_breakers.size() * sizeof(int32_t)) + padded(draw.inputs.mask.size_bytes()) +
             padded(sizeof(int32_t) * (n_history - static_cast<size_t>(history_start(packed.row))));
  }
  TRY(parcel_.resize(bytes));

  std::byte *host = parcel_.host(), *device = parcel_.device();
  size_t used = padded(sizeof(SampleRow) * draws.size());
  const auto place = [&](const auto& list) {
    using T = typename std::remove_cvref_t<decltype(list)>::value_type;
    const auto* at = reinterpret_cast<const T*>(device + used);
    if (list.empty()) return static_cast<const T*>(nullptr);
    std::memcpy(host + used, list.data(), list.size() * sizeof(T));
    used += padded(list.size() * sizeof(T));
    return at;
  };
  // The tokens of both, one after the other, but for the first `skipped`.
  const auto place_both = [&](std::span<const int32_t> said, std::span<const int32_t> ahead, size_t skipped) {
    const auto* at = reinterpret_cast<const int32_t*>(device + used);
    const size_t of_said = std::min(skipped, said.size());
    said = said.subspan(of_said);
    ahead = ahead.subspan(skipped - of_said);
    if (said.empty() && ahead.empty()) return static_cast<const int32_t*>(nullptr);
    auto* to = reinterpret_cast<int32_t*>(host + used);
    std::copy(ahead.begin(), ahead.end(), std::copy(said.begin(), said.end(), to));
    used += padded((said.size() + ahead.size()) * sizeof(int32_t));
    return at;
  };
  tag_ = std::max(tag_ + 1, 1u);  // none is 0
  auto* rows = reinterpret_cast<SampleRow*>(host);
  for (int i = 0; i < n; ++i) {
    SampleRow row = packed_[i].row;
    row.tag = tag_;
    if (!accept_into.empty()) row.accept_into = accept_into[static_cast<size_t>(i)];
    if (draws[i]->params != nullptr) {
      row.bias = place(packed_[i].bias);
      row.memory = place(packed_[i].memory);
      row.dry_penalties = place(packed_[i].dry_penalties);
      row.dry_breakers = place(packed_[i].dry_breakers);
      row.mask = place(draws[i]->inputs.mask);
      const int32_t start = history_start(row);
      row.history = place_both(draws[i]->state->tokens(), draws[i]->ahead, static_cast<size_t>(start));
      row.n_history -= start;
      row.n_prompt = std::max(0, row.n_prompt - start);
      row.counts_start -= start;
      row.dry_start -= start;
    }
    rows[i] = row;
  }
  CHECK(used == bytes);
  return DrawShape{n, needs.rounded()};
}

Status Drawing::launch(const Stream& stream, const float* logits, const DrawShape& shape, int first, int n) const {
  return sample_rows(stream, {logits,
                              reinterpret_cast<const SampleRow*>(parcel_.device()) + first,
                              n,
                              n_vocab_,
                              n_suppressed_ > 0 ? suppressed_.data() : nullptr,
                              suppressed_bits_.data(),
                              n_suppressed_,
                              shape.needs,
                              {scratch_.data(), scratch_rows_},
                              sampled_.data() + first,
                              top_.data() + static_cast<size_t>(first) * kMaxTopLogprobs,
                              kMaxTopLogprobs});
}

Status Drawing::launch(const Stream& stream, const float* logits, const HeadPartView& part, int first, int n) const {
  return best_of_part(stream, {logits, part, reinterpret_cast<const SampleRow*>(parcel_.device()) + first, n, n_vocab_,
                               n_suppressed_ > 0 ? suppressed_bits_.data() : nullptr, sampled_.data() + first});
}

bool Drawing::looked_for(int n_looks) const {
  for (size_t i = 0; i < packed_.size();) {
    if (std::atomic_ref(sampled_[i].tag).load(std::memory_order_acquire) == tag_) {
      ++i;
    } else if (n_looks-- > 0) {
      relax();
    } else {
      return false;
    }
  }
  return true;
}

Result<Sampled> Drawing::drawn(int i) const {
  const SampledRow& row = sampled_[i];
  TRY(sample_status(row, n_vocab_, positions_[i]));
  Sampled sampled;
  sampled.id = row.id;
  if (!packed_[i].row.wants_stats) return Result<Sampled>{std::move(sampled)};
  sampled.logprob = row.logprob;
  sampled.entropy = row.entropy;
  sampled.max_prob = row.max_prob;
  const TokenLogprob* top = top_.data() + static_cast<size_t>(i) * kMaxTopLogprobs;
  sampled.top.assign(top, top + row.n_top);
  return Result<Sampled>{std::move(sampled)};
}

}  // namespace chimere::cuda
