// Replaces operator new of the test program by one that counts. In a file of its own, because a compiler that sees both
// the replacement and its use takes the call of free for a mistake. Every form is replaced: a sanitizer brings its own
// for those left out, and would then report the mixture.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "gguf/counted_memory_for_test.h"

namespace {

thread_local size_t g_allocated_bytes = 0;

void* counted(size_t bytes) {
  g_allocated_bytes += bytes;
  return std::malloc(bytes ? bytes : 1);
}

void* counted_or_throw(size_t bytes) {
  if (void* memory = counted(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t bytes) { return counted_or_throw(bytes); }
void* operator new[](size_t bytes) { return counted_or_throw(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace chimere {

size_t allocated_bytes() { return g_allocated_bytes; }

namespace {

TEST(CountedMemory, SeesAllocations) {
  const size_t before = allocated_bytes();
  auto memory = std::make_unique<char[]>(1000);
  memory[999] = 1;
  EXPECT_EQ(allocated_bytes() - before, memory[999] * 1000u);
}

}  // namespace
}  // namespace chimere
