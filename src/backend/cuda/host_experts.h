// host_experts.h  The mixtures whose routed experts stay with the host: their weights in RAM, and the way there and
// back.
//
// In the middle of a step the card writes rows, choices and weights to pinned memory; the host's threads compute the
// experts there (backend/cpu) while the card is at the shared one; the card reads the sums. No copy is queued and the
// engine's thread has no part in it, so a whole step is one graph with or without such layers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/host_lane.h"
#include "base/result.h"

namespace chimere::cpu {
class ExpertBank;
}

namespace chimere::cuda {

// The first options.cpu_moe mixtures of a program. Refuses more of them than there are.
Result<std::vector<const op::MoeFfn*>> hosted_mixtures(const Program& program, int cpu_moe);

class HostExperts {
 public:
  static Result<std::unique_ptr<HostExperts>> create(const Program& program,
                                                     const std::vector<const op::MoeFfn*>& mixtures, int max_rows,
                                                     const LoadOptions& options);
  ~HostExperts();

  // What the experts of the mixture get: these rows of the device, which are as wide as they are, with a norm after it
  // was applied.
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
  // Their weighted sums [n_rows, width], in pinned memory, for what the stream is given from now on to the next
  // begin().
  Result<const float*> join(const Stream& stream);

  int n_mixtures() const { return static_cast<int>(shapes_.size()); }
  uint64_t weight_bytes() const;

 private:
  struct Shape {
    int width, n_used;
  };
  struct Call {
    HostExperts* experts;
    int mixture, n_rows;
  };

  explicit HostExperts(HostLane lane);
  static void compute(void* call);

  HostLane lane_;
  std::vector<Shape> shapes_;
  std::unique_ptr<cpu::ExpertBank> bank_;
  PinnedBuffer<float> x_, weights_, sums_;
  PinnedBuffer<int32_t> ids_;
  std::map<std::pair<int, int>, Call> calls_;  // by mixture and rows; graphs point into it
};

}  // namespace chimere::cuda
