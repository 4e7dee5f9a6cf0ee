// vector_teacher.h  Teaches routers the vectors of their examples, on a thread of its own: no question waits for them.
//
// Until a router has them, its questions are routed by words. Routes that change make a new router, which is taught when
// it is first asked.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "odo/routing/router.h"
#include "orchestrator/embedder.h"

namespace chimere::odo {

class VectorTeacher {
 public:
  // The embedder outlives it.
  explicit VectorTeacher(orchestrator::Embedder& embedder);
  // Ends after the few texts that are being embedded.
  ~VectorTeacher();
  VectorTeacher(const VectorTeacher&) = delete;
  VectorTeacher& operator=(const VectorTeacher&) = delete;

  // What a choice by this router may use: vectors where it has those of its examples; else nothing yet, and it is taught.
  // Never waits. Any thread.
  RouteHooks hooks_for(const std::shared_ptr<const Router>& router);

 private:
  void teach();

  orchestrator::Embedder& embedder_;
  std::mutex mutex_;  // guards the next two
  std::shared_ptr<const Router> next_;
  std::shared_ptr<const Router> failed_;  // the last that could not be taught; it is not tried again
  std::atomic<bool> stops_{false};
  std::condition_variable woken_;
  std::thread thread_;
};

}  // namespace chimere::odo
