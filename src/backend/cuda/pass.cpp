// pass.cpp  Cutting a batch into passes, and staging one.
#include "backend/cuda/pass.h"

#include <algorithm>
#include <iterator>

namespace chimere::cuda {
namespace {

// Tokens of a slice that come behind those of the batch, from a chain of drafts.
int chained_tokens(const Batch& batch, int slice) {
  return batch.draft_depths.empty() ? 0 : batch.draft_depths[static_cast<size_t>(slice)] - 1;
}

int end_of(const Batch& batch, int slice) {
  return batch.slices[slice].pos + batch.slices[slice].n_tokens + chained_tokens(batch, slice);
}

int pages_of(const Batch& batch, int slice) { return (end_of(batch, slice) + kPageTokens - 1) / kPageTokens; }

void add(Pass& pass, const Batch& batch, int slice_index) {
  const Slice& slice = batch.slices[slice_index];
  pass.is_adapted |= slice.is_adapted();
  pass.slices.push_back(slice_index);
  pass.n_rows += slice.n_tokens;
  pass.max_tokens = std::max(pass.max_tokens, slice.n_tokens);
  pass.max_kv = std::max(pass.max_kv, end_of(batch, slice_index));
  const std::vector<int32_t>& rows = batch.logit_rows;
  const auto first = std::lower_bound(rows.begin(), rows.end(), slice.first_row);
  const auto last = std::lower_bound(first, rows.end(), slice.first_row + slice.n_tokens);
  for (auto row = first; row != last; ++row) pass.outputs.push_back(static_cast<int32_t>(row - rows.begin()));
}

}  // namespace

std::vector<Pass> split_batch(const Batch& batch, const PassLimits& limits) {
  std::vector<Pass> decode, prompts[2];  // those without adapters, those with
  for (int i = 0; i < static_cast<int>(batch.slices.size()); ++i) {
    const Slice& slice = batch.slices[i];
    if (slice.n_tokens == 0) continue;
    if (slice.is_decode()) {
      if (decode.empty() || decode.back().n_rows + slice.n_tokens > limits.decode_rows) decode.emplace_back();
      add(decode.back(), batch, i);
    } else {
      std::vector<Pass>& prefill = prompts[slice.is_adapted()];
      if (prefill.empty() || static_cast<int>(prefill.back().slices.size()) == limits.prefill_slices) {
        prefill.emplace_back().is_decode = false;
      }
      add(prefill.back(), batch, i);
    }
  }
  for (std::vector<Pass>& prefill : prompts) {
    decode.insert(decode.end(), std::make_move_iterator(prefill.begin()), std::make_move_iterator(prefill.end()));
  }
  return decode;
}

namespace {

// Where the arrays lie, in bytes. Those of chained passes, `n_chained` rows in all, stand behind the pass's own.
struct Places {
  uint64_t slices, tokens, row_slice, row_pos, logit_rows, pages;

  Places(int n_rows, int n_slices, int n_logit_rows, int n_chained = 0) {
    const uint64_t rows_bytes = sizeof(int32_t) * static_cast<uint64_t>(n_rows + n_chained);
    slices = 0;
    tokens = sizeof(DeviceSlice) * static_cast<uint64_t>(n_slices + n_chained);
    row_slice = tokens + rows_bytes;
    row_pos = row_slice + rows_bytes;
    logit_rows = row_pos + rows_bytes;
    pages = (logit_rows + sizeof(int32_t) * static_cast<uint64_t>(n_logit_rows + n_chained) + 15) / 16 * 16;
  }
};

uint64_t first_bytes(int max_rows) {
  constexpr uint64_t kPages = 8192;  // half a million positions; with more, the first batch that has them makes room
  return Places(max_rows, max_rows, max_rows).pages + kPages * sizeof(std::byte*);
}

}  // namespace

Result<BatchStaging> BatchStaging::create(Ledger& ledger, int max_rows, bool kv_pages) {
  TRY_ASSIGN(Parcel parcel, Parcel::create(ledger, first_bytes(max_rows)));
  return BatchStaging(std::move(parcel), kv_pages);
}

uint64_t BatchStaging::device_bytes(int max_rows) { return Parcel::device_bytes(first_bytes(max_rows)); }

Result<BatchView> BatchStaging::stage(const Batch& batch, const Pass& pass) {
  const int n_slices = static_cast<int>(pass.slices.size()), n_outputs = static_cast<int>(pass.outputs.size());
  int n_chained = 0;
  for (int32_t i : pass.slices) n_chained += chained_tokens(batch, i);
  const Places at(pass.n_rows, n_slices, n_outputs, n_chained);
  uint64_t bytes = at.pages;
  if (kv_pages_) {
    for (int32_t i : pass.slices) bytes += pages_of(batch, i) * sizeof(std::byte*);
  }
  TRY(parcel_.resize(bytes));

  std::byte *host = parcel_.host(), *device = parcel_.device();
  auto* slices = reinterpret_cast<DeviceSlice*>(host + at.slices);
  auto* tokens = reinterpret_cast<int32_t*>(host + at.tokens);
  auto* row_slice = reinterpret_cast<int32_t*>(host + at.row_slice);
  auto* row_pos = reinterpret_cast<int32_t*>(host + at.row_pos);
  auto* logit_rows = reinterpret_cast<int32_t*>(host + at.logit_rows);
  uint64_t page = at.pages;
  int row = 0, output = 0;
  for (int s = 0; s < n_slices; ++s) {
    const Slice& slice = batch.slices[pass.slices[s]];
    slices[s] = {reinterpret_cast<std::byte* const*>(device + page),
                 slice.state.recurrent,
                 slice.state.replay,
                 slice.pos,
                 slice.n_tokens,
                 row,
                 slice.second_kind_at};
    if (kv_pages_) {
      const int n = pages_of(batch, pass.slices[s]);
      std::copy_n(slice.state.kv_pages, n, reinterpret_cast<std::byte**>(host + page));
      page += n * sizeof(std::byte*);
    }
    for (; output < n_outputs && batch.logit_rows[pass.outputs[output]] < slice.first_row + slice.n_tokens; ++output) {
      logit_rows[output] = batch.logit_rows[pass.outputs[output]] - slice.first_row + row;
    }
    for (int t = 0; t < slice.n_tokens; ++t, ++row) {
      tokens[row] = batch.tokens[slice.first_row + t];
      row_slice[row] = s;
      row_pos[row] = slice.pos + t;
    }
  }
  const BatchView view{reinterpret_cast<const int32_t*>(device + at.tokens),
                       reinterpret_cast<const DeviceSlice*>(device + at.slices),
                       reinterpret_cast<const int32_t*>(device + at.row_slice),
                       reinterpret_cast<const int32_t*>(device + at.row_pos),
                       reinterpret_cast<const int32_t*>(device + at.logit_rows),
                       pass.n_rows,
                       n_slices,
                       n_outputs};
  chain_.clear();
  for (int k = 0, done = 0; done < n_chained; ++k) {
    int n = 0;  // slices whose chain has one more: the first ones
    for (; n < n_slices && chained_tokens(batch, pass.slices[n]) > k; ++n) {
      const int i = done + n;
      DeviceSlice& slice = slices[n_slices + i] = slices[n];
      slice.pos += slice.n_tokens + k;
      slice.n_tokens = 1;
      slice.first_row = n;
      tokens[row + i] = 0;
      row_slice[row + i] = logit_rows[n_outputs + i] = n;
      row_pos[row + i] = slice.pos;
    }
    chain_.push_back({view.tokens + row + done, view.slices + n_slices + done, view.row_slice + row + done,
                      view.row_pos + row + done, view.logit_rows + n_outputs + done, n, n, n});
    done += n;
  }
  return view;
}

}  // namespace chimere::cuda
