#include "backend/cuda/head_part.h"

#include <algorithm>
#include <utility>

#include "backend/backend.h"
#include "base/check.h"

namespace chimere::cuda {

static_assert(kPartBlock == kHeadBlock);

Result<HeadPart> HeadPart::create(Ledger& ledger, const Weight& matrix, int max_blocks) {
  HeadPart part;
  part.matrix_ = matrix;
  part.max_blocks_ = max_blocks;
  const auto n = static_cast<size_t>(max_blocks);
  TRY_ASSIGN(part.rows_, DeviceBuffer<uint8_t>::create(ledger, Purpose::weights, n * kPartBlock * matrix.row_bytes));
  TRY_ASSIGN(part.device_blocks_, DeviceBuffer<int32_t>::create(ledger, Purpose::weights, n));
  TRY_ASSIGN(part.host_blocks_, PinnedBuffer<int32_t>::create(n));
  return Result<HeadPart>{std::move(part)};
}

Result<HeadPartView> HeadPart::choose(const Stream& stream, std::span<const int32_t> blocks) {
  CHECK(!blocks.empty() && blocks.size() <= static_cast<size_t>(max_blocks_));
  if (std::ranges::equal(blocks, this->blocks())) return view_;
  const auto n = static_cast<int>(blocks.size());
  std::copy(blocks.begin(), blocks.end(), host_blocks_.data());
  view_ = {};  // nothing is known of what a failure leaves
  TRY(device_blocks_.write(stream, host_blocks_.span().first(blocks.size())));
  TRY(gather_head_part(stream, matrix_, device_blocks_.data(), n, rows_.data()));
  view_ = {rows_.data(), device_blocks_.data(), n};
  return view_;
}

}  // namespace chimere::cuda
