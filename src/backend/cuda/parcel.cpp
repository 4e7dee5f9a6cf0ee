// parcel.cpp  Making room in a parcel and sending it off.
#include "backend/cuda/parcel.h"

#include <algorithm>

namespace chimere::cuda {

namespace {

uint64_t whole_pieces(uint64_t capacity) {
  return std::max<uint64_t>((capacity + kFetchPiece - 1) / kFetchPiece * kFetchPiece, kFetchAtOnce);
}

}  // namespace

uint64_t Parcel::device_bytes(uint64_t capacity) { return Ledger::taken_bytes(whole_pieces(capacity)); }

Result<Parcel> Parcel::create(Ledger& ledger, uint64_t capacity) {
  Parcel parcel(ledger);
  TRY(parcel.reserve(capacity));
  return Result<Parcel>{std::move(parcel)};
}

Status Parcel::reserve(uint64_t capacity) {
  const uint64_t whole = whole_pieces(capacity);
  n_moves_++;
  TRY_ASSIGN(pinned_, PinnedBuffer<std::byte>::create(sizeof(FetchHeader) + whole));
  *header() = {};
  device_ = {};
  TRY_ASSIGN(device_, DeviceBuffer<std::byte>::create(*ledger_, Purpose::scratch, whole));
  return Ok{};
}

Status Parcel::resize(uint64_t bytes) {
  if (bytes > capacity()) TRY(reserve(2 * bytes));
  size_ = bytes;
  return Ok{};
}

Status Parcel::send(const Stream& stream) const { return stream.copy(device(), host(), size_); }

Status Parcel::offer(const Stream& stream) const {
  const bool is_fetched = size_ <= kMostFetched;
  header()->n_pieces = is_fetched ? static_cast<uint32_t>((size_ + kFetchPiece - 1) / kFetchPiece) : 0;
  if (!is_fetched) TRY(send(stream));
  return Ok{};
}

}  // namespace chimere::cuda
