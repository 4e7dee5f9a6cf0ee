// graph.cpp  Graphs of the device, and lists of work in the emulator.
#include "backend/cuda/runtime/graph.h"

#include <string>

#include "base/check.h"

#ifndef CHIMERE_SIMT_EMULATOR
#include "backend/cuda/runtime/error.h"
#endif

namespace chimere::cuda {

#ifdef CHIMERE_SIMT_EMULATOR

Result<Graph> Graph::capture(const Stream& stream, const std::function<Status()>& record) {
  CHECK(stream.queue_ && "only a stream of Stream::create() can be captured");
  Graph graph;
  stream.queue_->recording = &graph.work_;
  Status recorded = record();
  stream.queue_->recording = nullptr;
  TRY(std::move(recorded));
  graph.n_nodes_ = static_cast<int>(graph.work_.size());
  return Result<Graph>{std::move(graph)};
}

Graph::~Graph() = default;

Status Graph::launch(const Stream& stream) const {
  for (const EmulatedQueue::Work& work : work_) stream.submit(work);
  return Ok{};
}

#else

Result<Graph> Graph::capture(const Stream& stream, const std::function<Status()>& record) {
  // Thread-local: other threads may go on allocating meanwhile.
  TRY(checked(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture"));
  Status recorded = record();
  cudaGraph_t written = nullptr;
  Status ended = checked(cudaStreamEndCapture(stream.handle(), &written), "cudaStreamEndCapture");
  if (!recorded || !ended) {
    if (written) cudaGraphDestroy(written);
    return std::move(!recorded ? recorded.error() : ended.error());
  }
  Graph graph;
  size_t n_nodes = 0, before = 0, after = 0, total = 0;
  Status made = checked(cudaGraphGetNodes(written, nullptr, &n_nodes), "cudaGraphGetNodes");
  cudaMemGetInfo(&before, &total);
  if (made) {
    made = checked(cudaGraphInstantiate(&graph.handle_, written, 0),
                   "cudaGraphInstantiate of " + std::to_string(n_nodes) + " nodes");
  }
  if (made) made = checked(cudaGraphUpload(graph.handle_, stream.handle()), "cudaGraphUpload");
  cudaMemGetInfo(&after, &total);
  cudaGraphDestroy(written);
  TRY(std::move(made));
  graph.n_nodes_ = static_cast<int>(n_nodes);
  graph.device_bytes_ = before > after ? before - after : 0;
  return Result<Graph>{std::move(graph)};
}

Graph::~Graph() {
  if (handle_) cudaGraphExecDestroy(handle_);
}

Status Graph::launch(const Stream& stream) const {
  return checked(cudaGraphLaunch(handle_, stream.handle()),
                 "cudaGraphLaunch of " + std::to_string(n_nodes_) + " nodes");
}

#endif

}  // namespace chimere::cuda
