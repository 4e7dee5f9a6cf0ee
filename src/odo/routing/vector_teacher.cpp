#include "odo/routing/vector_teacher.h"

#include <algorithm>
#include <utility>

#include "odo/routing/service_hooks.h"

namespace chimere::odo {
namespace {

constexpr size_t kTaughtAtOnce = 16;  // what the end of the program may have to wait for

}  // namespace

VectorTeacher::VectorTeacher(orchestrator::Embedder& embedder) : embedder_(embedder), thread_([this] { teach(); }) {}

VectorTeacher::~VectorTeacher() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

RouteHooks VectorTeacher::hooks_for(const std::shared_ptr<const Router>& router) {
  RouteHooks hooks;
  if (router->knows_vectors(embedder_.model_fingerprint())) {
    lend_vectors(embedder_, {}, hooks);
    return hooks;
  }
  {
    const std::lock_guard lock(mutex_);
    if (failed_ == router) return hooks;
    next_ = router;
  }
  woken_.notify_all();
  return hooks;
}

void VectorTeacher::teach() {
  RouteHooks whole;
  lend_vectors(embedder_, {}, whole);
  RouteHooks hooks;
  hooks.embedder = whole.embedder;
  hooks.embed = [this, &whole](const std::vector<std::string>& texts) -> Result<RouteVectors> {
    RouteVectors vectors;
    for (size_t at = 0; at < texts.size(); at += kTaughtAtOnce) {
      if (stops_) return Error{Code::cancelled, "the program ends"};
      const auto first = texts.begin() + static_cast<std::ptrdiff_t>(at);
      const auto n = static_cast<std::ptrdiff_t>(std::min(kTaughtAtOnce, texts.size() - at));
      TRY_ASSIGN(RouteVectors some, whole.embed({first, first + n}));
      for (auto& vector : some) vectors.push_back(std::move(vector));
    }
    return Result<RouteVectors>{std::move(vectors)};
  };
  std::unique_lock lock(mutex_);
  for (;;) {
    woken_.wait(lock, [this] { return stops_ || next_; });
    if (stops_) return;
    const std::shared_ptr<const Router> router = std::exchange(next_, nullptr);
    lock.unlock();
    const Status taught = router->learn_vectors(hooks);
    lock.lock();
    failed_ = taught ? nullptr : router;
  }
}

}  // namespace chimere::odo
