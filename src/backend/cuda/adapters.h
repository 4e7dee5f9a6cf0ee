// adapters.h  Adapters in device memory, and those of a pass staged for the kernels.
//
// An adapter is copied to the card when it is loaded and freed when the last request that uses it is done, and is
// charged to the ledger as `adapters`. Working memory is allocated with the first adapter: without any it is free.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backend/adapter.h"
#include "backend/backend.h"
#include "backend/cuda/kernels/rows/adapters.h"
#include "backend/cuda/pass.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/ledger.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

// What the launches of a pass depend on, as far as its adapters go.
struct PassAdapters {
  AdapterView view;
  std::vector<bool> changed;  // by MatrixId; empty: no row has adapters
  // For prompts: gate and up of a feed-forward, ffn_rows at a time, which adapters change before the activation.
  float *ffn_gate = nullptr, *ffn_up = nullptr;
  int ffn_rows = 0;

  explicit operator bool() const { return !changed.empty(); }
  bool changes(MatrixId id) const { return !changed.empty() && id != kNone && changed[static_cast<size_t>(id)]; }
  bool operator==(const PassAdapters& o) const { return view == o.view && changed == o.changed; }
};

class AdapterMemory {
 public:
  // Both outlive it. max_rows and limits are those of the passes to come.
  AdapterMemory(Ledger& ledger, const Program& program, int max_rows, const PassLimits& limits);

  // Executable::hold_adapter: from any thread.
  Result<std::shared_ptr<const void>> hold(const Adapter& adapter);

  // Executable::refresh_adapter. The stream is done with it on return.
  Status refresh(const Stream& stream, const Adapter& adapter);

  // Starts the copy. REQUIRES: the stream is done with the pass before; all adapters of the pass are held.
  Result<PassAdapters> stage(const Stream& stream, const Batch& batch, const Pass& pass);

 private:
  Status reserve_work();
  Status reserve_uses(size_t n);

  Ledger& ledger_;
  const size_t n_matrices_;
  const int max_tiles_;
  const int ffn_rows_;
  int d_ff_ = 0;  // of the widest dense feed-forward

  // Allocated under the mutex with the first adapter; read later by the thread that runs passes.
  std::mutex mutex_;
  DeviceArena work_;
  float *low_ = nullptr, *ffn_gate_ = nullptr, *ffn_up_ = nullptr;

  // Used by the thread that runs passes only.
  PinnedBuffer<AdapterTile> host_tiles_;
  DeviceBuffer<AdapterTile> tiles_;
  PinnedBuffer<AdapterUse> host_uses_;
  DeviceBuffer<AdapterUse> uses_;
};

}  // namespace chimere::cuda
