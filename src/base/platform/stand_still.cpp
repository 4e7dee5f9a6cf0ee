#include "base/platform/stand_still.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

namespace chimere {
namespace {

struct Standing {
  std::mutex mutex;
  std::condition_variable none;
  int n = 0;  // StandFast there are
};

// Never destroyed: the thread that waits for signals outlives main().
Standing& standing() {
  static auto* one = new Standing;
  return *one;
}

void wait_for_signals() {
  sigset_t asked;
  sigemptyset(&asked);
  sigaddset(&asked, SIGTSTP);
  for (;;) {
    int signal = 0;
    if (sigwait(&asked, &signal) != 0) continue;
    Standing& all = standing();
    std::unique_lock lock(all.mutex);
    all.none.wait(lock, [&] { return all.n == 0; });
    // With the mutex: who would stand fast now waits until the process goes on.
    ::kill(::getpid(), SIGSTOP);
  }
}

}  // namespace

void stand_still_when_asked() {
  sigset_t asked;
  sigemptyset(&asked);
  sigaddset(&asked, SIGTSTP);
  pthread_sigmask(SIG_BLOCK, &asked, nullptr);
  std::thread(wait_for_signals).detach();
}

StandFast::StandFast() {
  Standing& all = standing();
  const std::lock_guard lock(all.mutex);
  ++all.n;
}

StandFast::~StandFast() {
  if (!counts_) return;
  Standing& all = standing();
  const std::lock_guard lock(all.mutex);
  if (--all.n == 0) all.none.notify_all();
}

}  // namespace chimere
