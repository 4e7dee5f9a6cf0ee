// fiber.h  A stack of its own that runs a function and can be left and resumed: a thread of the emulator.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHIMERE_ASAN 1
#elif __has_feature(thread_sanitizer)
#define CHIMERE_TSAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CHIMERE_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define CHIMERE_TSAN 1
#endif

#if defined(__x86_64__)
#define CHIMERE_FAST_FIBERS 1  // six registers; swapcontext makes a system call each time
#else
#include <ucontext.h>
#endif

namespace chimere::cuda::simt {

class Fiber {
 public:
  // body must never return.
  explicit Fiber(void (*body)());
  ~Fiber();
  Fiber(const Fiber&) = delete;

  void resume();  // runs the fiber until it leaves
  void leave();   // called on the fiber: back to who resumed it

 private:
  static void enter();

  void (*body_)();
  std::byte* stack_ = nullptr;  // a guard page, then the stack
#ifdef CHIMERE_FAST_FIBERS
  void* fiber_sp_ = nullptr;
  void* caller_sp_ = nullptr;
#else
  ucontext_t fiber_context_;
  ucontext_t caller_context_;
#endif
  // What the sanitizers want to know of both stacks.
#ifdef CHIMERE_ASAN
  const void* caller_bottom_ = nullptr;
  size_t caller_size_ = 0;
  void* caller_fake_ = nullptr;
  void* fiber_fake_ = nullptr;
#endif
#ifdef CHIMERE_TSAN
  void* tsan_fiber_ = nullptr;
  void* tsan_caller_ = nullptr;
#endif
};

}  // namespace chimere::cuda::simt
