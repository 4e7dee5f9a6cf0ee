// mask_maker.h  A thread for masks that take long, so that only the answers they belong to wait for them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "sampling/token_constraint.h"

namespace chimere::engine {

class MaskMaker {
 public:
  // Told on the maker's thread that the constraint has its next mask.
  using Done = std::function<void(std::shared_ptr<TokenConstraint>)>;

  MaskMaker();
  // What still waits is dropped.
  ~MaskMaker();

  // Any thread. Nobody else uses the constraint until it is done.
  void make(std::shared_ptr<TokenConstraint> constraint, Done done);

 private:
  struct Job {
    std::shared_ptr<TokenConstraint> constraint;
    Done done;
  };
  void thread_main();

  std::mutex mutex_;  // guards the three below
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace chimere::engine
