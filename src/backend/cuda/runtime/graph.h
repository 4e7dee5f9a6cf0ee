// graph.h  A CUDA graph: work of a stream captured once and launched many times: one submission per decode step.
//
// Arguments are captured with the work: what changes from step to step has to be in device memory. The emulator keeps
// the work as a list, so that a kernel argument which should have been in memory goes wrong there too.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

struct CUgraphExec_st;

namespace chimere::cuda {

class Graph {
 public:
  // Captures what `record` gives to the stream; none of it runs. `record` must not synchronise or allocate.
  static Result<Graph> capture(const Stream& stream, const std::function<Status()>& record);
  ~Graph();
  Graph(Graph&& other) noexcept { swap(other); }
  Graph& operator=(Graph&& other) noexcept {
    Graph(std::move(other)).swap(*this);
    return *this;
  }

  Status launch(const Stream& stream) const;

  int n_nodes() const { return n_nodes_; }
  // How much of the card's memory instantiation took, for the ledger: measured, assuming no other program allocates.
  uint64_t device_bytes() const { return device_bytes_; }

 private:
  Graph() = default;
  void swap(Graph& other) {
    std::swap(handle_, other.handle_);
    std::swap(work_, other.work_);
    std::swap(n_nodes_, other.n_nodes_);
    std::swap(device_bytes_, other.device_bytes_);
  }

  CUgraphExec_st* handle_ = nullptr;
  std::vector<EmulatedQueue::Work> work_;
  int n_nodes_ = 0;
  uint64_t device_bytes_ = 0;
};

}  // namespace chimere::cuda
