// host_experts.h  The MoE layers whose routed experts stay on the host: their weights in RAM, and the transfer of rows
// and sums.
//
// In the middle of a step the card writes rows, choices and weights to pinned memory and signals the host; the host's
// threads compute the experts there (backend/cpu) while the card computes the shared one; the card waits for the sums
// and reads them. No copy is queued and the engine's thread is not involved, so a whole step is one graph with or
// without such layers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/kernels/experts/host_rows.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/host_lane.h"
#include "base/result.h"

namespace chimere::cpu {
class ExpertBank;
}

namespace chimere::cuda {

// The first cpu_moe MoE layers of a program. Refuses more of them than there are.
Result<std::vector<const op::MoeFfn*>> hosted_mixtures(const Program& program, int cpu_moe);

class HostExperts {
 public:
  static Result<std::unique_ptr<HostExperts>> create(const Program& program,
                                                     const std::vector<const op::MoeFfn*>& mixtures, int max_rows,
                                                     const LoadOptions& options);
  ~HostExperts();

  // The input of a layer's experts: these device rows, of the experts' width; where there is a norm, after it has been
  // applied.
  struct Rows {
    int mixture;
    int n_rows;
    const float* x;        // [n_rows, width]
    const int32_t* ids;    // [n_rows, n_used]
    const float* weights;  // [n_rows, n_used], rows weights_stride apart
    int weights_stride;
    const float* norm = nullptr;  // [width]
    float eps = 0;
  };
  Status begin(const Stream& stream, const Rows& rows);
  // Waits for the weighted sums [n_rows, width] and adds them, and whatever else `into` names, to its `out`. Fills in
  // where the sums come from.
  Status join(const Stream& stream, TakeBackArgs into);

  // To be held while the card has work that contains begin() and join().
  HostLane* lane() const { return lane_.get(); }

  // Of the disk that experts are read from, since the last call. REQUIRES: nothing of join() is left on the card.
  Status failure();

  int n_mixtures() const { return static_cast<int>(shapes_.size()); }
  uint64_t weight_bytes() const;
  std::optional<ExpertTraffic> traffic() const;

 private:
  struct Shape {
    int width, n_used;
  };

  HostExperts();
  void compute(int mixture, int n_rows);

  std::vector<Shape> shapes_;
  std::unique_ptr<cpu::ExpertBank> bank_;
  PinnedBuffer<float> x_, weights_, sums_;
  PinnedBuffer<int32_t> ids_;
  int mixture_ = 0;                 // of the last begin()
  std::unique_ptr<HostLane> lane_;  // last: its thread uses the rest
};

}  // namespace chimere::cuda
