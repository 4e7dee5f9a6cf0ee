#include "base/platform/stand_still.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <thread>

#include "base/platform/child_process.h"

namespace chimere {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// "T": stopped by a signal.
char state_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? '?' : stat[name_end + 2];
}

bool comes_to(const std::string& pid, bool stands) {
  for (int i = 0; i < 5000 && (state_of(pid) == 'T') != stands; ++i) std::this_thread::sleep_for(milliseconds(1));
  return (state_of(pid) == 'T') == stands;
}

// What the process of the test below does: it says what it holds, and goes on at every line it reads.
TEST(StandStill, DISABLED_Process) {
  stand_still_when_asked();
  std::string line;
  {
    const StandFast fast;
    {
      StandFast another;
      const StandFast moved = std::move(another);
    }
    std::cout << "pid " << ::getpid() << " holds" << std::endl;
    std::getline(std::cin, line);
  }
  std::cout << "free" << std::endl;
  std::getline(std::cin, line);
  std::cout << "again" << std::endl;
}

TEST(StandStill, WaitsForTheEndOfWhatOthersWaitFor) {
  auto child = ChildProcess::start({"/proc/self/exe", "--gtest_filter=StandStill.DISABLED_Process",
                                    "--gtest_also_run_disabled_tests", "--gtest_brief=1"});
  ASSERT_TRUE(child) << child.error().message;
  std::string said, error;
  const auto hears = [&](const std::string& what) {
    const auto end = steady_clock::now() + std::chrono::seconds(30);
    while (said.find(what) == std::string::npos && steady_clock::now() < end) {
      (void)child->read_some(said, error, steady_clock::now() + milliseconds(20));
    }
    return said.find(what) != std::string::npos;
  };
  const auto go_on = [&] { (void)child->write_some("\n", steady_clock::now() + milliseconds(100)); };
  ASSERT_TRUE(hears(" holds\n")) << said << error;
  const size_t at = said.find("pid ") + 4;
  const std::string pid = said.substr(at, said.find(' ', at) - at);

  child->pause();
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_NE(state_of(pid), 'T');
  go_on();
  EXPECT_TRUE(comes_to(pid, true));
  child->resume();
  EXPECT_TRUE(hears("free\n"));
  // Where nothing is held, at once, and as often as it is asked.
  child->pause();
  EXPECT_TRUE(comes_to(pid, true));
  go_on();
  child->resume();
  EXPECT_TRUE(hears("again\n")) << said << error;
  EXPECT_TRUE(child->wait(steady_clock::now() + std::chrono::seconds(30)));
}

}  // namespace
}  // namespace chimere
