#include "backend/cuda/runtime/host_lane.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/relax.h"

namespace chimere::cuda {
namespace {

// The two directions share no line of the cache.
constexpr int kLineWords = 16;
int padded(int words) { return (words + kLineWords - 1) / kLineWords * kLineWords; }

constexpr int kBlockBits = 16;

}  // namespace

Result<std::unique_ptr<HostLane>> HostLane::create(int max_blocks, Work work) {
  CHECK(max_blocks >= 1 && max_blocks <= kMaxBlocks);
  TRY_ASSIGN(auto words, PinnedBuffer<uint32_t>::create(size_t{2} * padded(max_blocks)));
  std::fill_n(words.data(), words.size(), 0u);
  std::unique_ptr<HostLane> lane(new HostLane(std::move(words), max_blocks, std::move(work)));
#ifndef CHIMERE_SIMT_EMULATOR
  lane->thread_ = std::thread([made = lane.get()] { made->look_out(); });
#endif
  return Result<std::unique_ptr<HostLane>>{std::move(lane)};
}

HostLane::HostLane(PinnedBuffer<uint32_t> words, int max_blocks, Work work)
    : words_(std::move(words)), max_blocks_(max_blocks), work_(std::move(work)) {}

HostLane::~HostLane() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  const Attention wake(this);
  thread_.join();
}

HostBell HostLane::bell(int task, int n_blocks) const {
  CHECK(task >= 0 && task < kMaxTasks && n_blocks >= 1 && n_blocks <= max_blocks_);
  const uint32_t message = static_cast<uint32_t>(task + 1) << kBlockBits | static_cast<uint32_t>(n_blocks);
  return {words_.data(), words_.data() + padded(max_blocks_), message};
}

void HostLane::join([[maybe_unused]] const Stream& stream) {
#ifdef CHIMERE_SIMT_EMULATOR
  stream.submit([this] { CHECK(answer() && "a kernel before this one rings"); });
#endif
}

bool HostLane::answer() {
  uint32_t* const rung = words_.data();
  const auto looked_at = [rung](int block) { return std::atomic_ref(rung[block]).load(std::memory_order_acquire); };
  const uint32_t message = looked_at(0);
  if (message == 0) return false;
  const int n_blocks = static_cast<int>(message & kMaxBlocks);
  for (int b = 0; b < n_blocks; ++b) {
    while (looked_at(b) == 0) relax();
    rung[b] = 0;
  }
  work_(static_cast<int>(message >> kBlockBits) - 1, n_blocks);
  uint32_t* const done = rung + padded(max_blocks_);
  for (int b = 0; b < n_blocks; ++b) std::atomic_ref(done[b]).store(1, std::memory_order_release);
  return true;
}

void HostLane::look_out() {
  while (!stopping_.load()) {
    if (n_attending_.load(std::memory_order_acquire) == 0) {
      n_attending_.wait(0, std::memory_order_acquire);
    } else if (!answer()) {
      relax();
    }
  }
}

HostLane::Attention::Attention(HostLane* lane) : lane_(lane) {
  if (!lane_) return;
  lane_->n_attending_.fetch_add(1, std::memory_order_release);
  lane_->n_attending_.notify_one();
}

HostLane::Attention::~Attention() {
  if (lane_) lane_->n_attending_.fetch_sub(1, std::memory_order_release);
}

}  // namespace chimere::cuda
