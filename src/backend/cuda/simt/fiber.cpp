// fiber.cpp  Switching stacks: by hand on x86-64, with swapcontext elsewhere.
#include "backend/cuda/simt/fiber.h"

#include <sys/mman.h>

#include <cstdint>

#include "base/check.h"

#ifdef CHIMERE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef CHIMERE_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#ifdef CHIMERE_FAST_FIBERS
// Keeps the callee-saved registers on the stack that is left, and takes those of the other one.
extern "C" void chimere_switch_stack(void** save_sp, void* load_sp);
asm(R"(
.text
.globl chimere_switch_stack
.type chimere_switch_stack, @function
chimere_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size chimere_switch_stack, .-chimere_switch_stack
)");
#endif

namespace chimere::cuda::simt {

namespace {

constexpr size_t kGuardBytes = 4096;
#if defined(CHIMERE_ASAN) || defined(CHIMERE_TSAN)
constexpr size_t kStackBytes = 256 << 10;  // red zones make frames larger
#else
constexpr size_t kStackBytes = 64 << 10;
#endif

thread_local Fiber* starting = nullptr;

}  // namespace

Fiber::Fiber(void (*body)()) : body_(body) {
  void* memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  CHECK(mprotect(memory, kGuardBytes, PROT_NONE) == 0);
  stack_ = static_cast<std::byte*>(memory) + kGuardBytes;
#ifdef CHIMERE_FAST_FIBERS
  // As if enter() had been called from address zero and left: return address, then the six registers.
  // Stacks begin at different offsets of their pages, or all of them would want the same cache lines.
  thread_local unsigned n_made = 0;
  uint64_t* sp = reinterpret_cast<uint64_t*>(stack_ + kStackBytes - n_made++ % 16 * 256);
  *--sp = 0;
  *--sp = reinterpret_cast<uint64_t>(&Fiber::enter);
  for (int i = 0; i < 6; i++) *--sp = 0;
  fiber_sp_ = sp;
#else
  CHECK(getcontext(&fiber_context_) == 0);
  fiber_context_.uc_stack.ss_sp = stack_;
  fiber_context_.uc_stack.ss_size = kStackBytes;
  fiber_context_.uc_link = nullptr;
  makecontext(&fiber_context_, &Fiber::enter, 0);
#endif
#ifdef CHIMERE_TSAN
  tsan_fiber_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef CHIMERE_TSAN
  __tsan_destroy_fiber(tsan_fiber_);
#endif
#ifdef CHIMERE_ASAN
  // Its body never returned, so its frames are still marked, and the next stack may be given the same addresses.
  __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
  munmap(stack_ - kGuardBytes, kGuardBytes + kStackBytes);
}

void Fiber::enter() {
  Fiber* self = starting;
#ifdef CHIMERE_ASAN
  __sanitizer_finish_switch_fiber(self->fiber_fake_, &self->caller_bottom_, &self->caller_size_);
#endif
  self->body_();
  CHECK(false && "a fiber's body returned");
}

void Fiber::resume() {
  starting = this;
#ifdef CHIMERE_ASAN
  __sanitizer_start_switch_fiber(&caller_fake_, stack_, kStackBytes);
#endif
#ifdef CHIMERE_TSAN
  tsan_caller_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_fiber_, 0);
#endif
#ifdef CHIMERE_FAST_FIBERS
  chimere_switch_stack(&caller_sp_, fiber_sp_);
#else
  CHECK(swapcontext(&caller_context_, &fiber_context_) == 0);
#endif
#ifdef CHIMERE_ASAN
  __sanitizer_finish_switch_fiber(caller_fake_, nullptr, nullptr);
#endif
}

void Fiber::leave() {
#ifdef CHIMERE_ASAN
  __sanitizer_start_switch_fiber(&fiber_fake_, caller_bottom_, caller_size_);
#endif
#ifdef CHIMERE_TSAN
  __tsan_switch_to_fiber(tsan_caller_, 0);
#endif
#ifdef CHIMERE_FAST_FIBERS
  chimere_switch_stack(&fiber_sp_, caller_sp_);
#else
  CHECK(swapcontext(&fiber_context_, &caller_context_) == 0);
#endif
#ifdef CHIMERE_ASAN
  __sanitizer_finish_switch_fiber(fiber_fake_, &caller_bottom_, &caller_size_);
#endif
}

}  // namespace chimere::cuda::simt
