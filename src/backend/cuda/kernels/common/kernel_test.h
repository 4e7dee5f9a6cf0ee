// kernel_test.h  What lets a kernel's test run in the emulator, under both its schedules, and on a card (see
// tests/cuda/managed_memory.cpp), once.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "backend/cuda/runtime/stream.h"
#ifdef CHIMERE_SIMT_EMULATOR
#include "backend/cuda/simt/emulator.h"
#endif

namespace chimere::cuda {

inline Stream test_stream() {
#ifdef CHIMERE_SIMT_EMULATOR
  return Stream();
#else
  Result<Stream> stream = Stream::create();
  EXPECT_TRUE(stream);
  return std::move(*stream);
#endif
}

template <class F>
void on_both_schedules(F&& test) {
#ifdef CHIMERE_SIMT_EMULATOR
  simt::for_both_schedules(test);
#else
  test();
#endif
}

// As on a card whose blocks may have so much shared memory; on a card, as it is.
template <class F>
void with_shared_limit([[maybe_unused]] size_t bytes, F&& test) {
#ifdef CHIMERE_SIMT_EMULATOR
  simt::set_shared_limit(bytes);
  test();
  simt::set_shared_limit(99 << 10);
#else
  test();
#endif
}

}  // namespace chimere::cuda
