#include "engine/mask_maker.h"

#include <exception>
#include <utility>

namespace chimere::engine {

MaskMaker::MaskMaker() : thread_([this] { thread_main(); }) {}

MaskMaker::~MaskMaker() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void MaskMaker::make(std::shared_ptr<TokenConstraint> constraint, Done done) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(constraint), std::move(done)});
  }
  wake_.notify_one();
}

void MaskMaker::thread_main() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    try {
      job.constraint->prepare(kWholeMask);
    } catch (const std::exception&) {
      // No memory: the engine tries once more itself, and fails the request if there still is none.
    }
    job.done(std::move(job.constraint));
  }
}

}  // namespace chimere::engine
