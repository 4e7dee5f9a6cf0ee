// expert_bank.h  The routed experts of some MoE layers in RAM, for a backend that computes everything else itself.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/workspace.h"
#include "base/result.h"
#include "base/thread_pool.h"

namespace chimere::cpu {

class ExpertBank {
 public:
  // Packs gate, up, down and their biases; MoE layers are numbered in the order given. Of the options only exact,
  // n_threads, progress, matrix_taken, and where experts go that RAM does not hold matter.
  static Result<std::unique_ptr<ExpertBank>> create(const Program& program,
                                                    const std::vector<const op::MoeFfn*>& mixtures, int max_rows,
                                                    const LoadOptions& options);

  // out[t] = sum_k weights[t][k] expert_k(x[t]), k over ids[t], added in that order; rows are as wide as the experts'
  // input and output. A row's bits depend on that row alone. Uses all threads of the bank; one caller at a time.
  // REQUIRES: 1 <= n_rows <= max_rows; ids [n_rows][n_used] are experts of the mixture.
  // A disk that fails is told by failure(), afterwards.
  void run(int mixture, int n_rows, const float* x, const int32_t* ids, const float* weights, float* out);

  Status failure() { return workspace_.store ? workspace_.store->failure() : Ok{}; }

  uint64_t weight_bytes() const { return workspace_.weight_bytes(); }
  std::optional<ExpertTraffic> traffic() const {
    return workspace_.store ? std::optional(workspace_.store->traffic()) : std::nullopt;
  }

 private:
  ExpertBank(Program experts, StateLayout layout, const LoadOptions& options);
  Status take_weights(const LoadOptions& options);

  const Program experts_;  // one MoeFfn per layer, with its routed experts only
  const StateLayout layout_;
  ThreadPool pool_;
  Workspace workspace_;
  Batch batch_;
  std::vector<float*> buffers_;  // where the results of each layer go
};

}  // namespace chimere::cpu
