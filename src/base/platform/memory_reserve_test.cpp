// The reserve is given up by the first allocation that fails, and taken again.
#include "base/platform/memory_reserve.h"

#include <gtest/gtest.h>

#include <new>

namespace chimere {
namespace {

TEST(MemoryReserve, IsGivenUpWhenMemoryEndsAndTakenAgain) {
  const std::new_handler before = std::get_new_handler();
  EXPECT_TRUE(keep_memory_reserve());
  EXPECT_TRUE(has_memory_reserve());
  // What operator new calls when it finds nothing.
  EXPECT_THROW(std::get_new_handler()(), std::bad_alloc);
  EXPECT_FALSE(has_memory_reserve());
  EXPECT_THROW(std::get_new_handler()(), std::bad_alloc);
  EXPECT_TRUE(keep_memory_reserve());
  EXPECT_TRUE(has_memory_reserve());
  std::set_new_handler(before);
}

}  // namespace
}  // namespace chimere
