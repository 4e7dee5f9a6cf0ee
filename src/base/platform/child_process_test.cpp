#include "base/platform/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "base/scratch_for_test.h"

namespace chimere {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

ProgramRun must_run(const std::vector<std::string>& arguments, RunOptions options = {}) {
  if (options.deadline == SteadyTime::max()) options.deadline = steady_clock::now() + std::chrono::seconds(60);
  Result<ProgramRun> run = run_program(arguments, options);
  EXPECT_TRUE(run) << run.error().message;
  return run ? std::move(*run) : ProgramRun{};
}

// A process that has ended may stay in the table until its new parent looks at it.
bool is_running(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat[name_end + 2] != 'Z' && stat[name_end + 2] != 'X';
}

bool ends_soon(int pid) {
  for (int i = 0; i < 5000 && is_running(pid); ++i) std::this_thread::sleep_for(milliseconds(1));
  return !is_running(pid);
}

TEST(ChildProcess, GivesBackMoreInputThanPipesHold) {
  const std::string input(3'000'000, 'x');
  RunOptions options;
  options.input = input;
  options.max_output_bytes = input.size();
  const ProgramRun run = must_run({"cat"}, options);
  EXPECT_EQ(run.end, ProgramRun::End::exited);
  EXPECT_TRUE(run.exit.is_success());
  EXPECT_TRUE(run.output == input);
}

TEST(ChildProcess, ArgumentsAreNeverReadByAShell) {
  const std::string hostile = "; touch x; $(touch y) `touch z` | \"'\\ *";
  EXPECT_EQ(must_run({"printf", "%s", hostile}).output, hostile);
}

TEST(ChildProcess, SaysHowItEnded) {
  EXPECT_EQ(must_run({"false"}).exit.code, 1);
  EXPECT_EQ(describe(must_run({"sh", "-c", "exit 3"}).exit), "exit code 3");
  EXPECT_EQ(describe(must_run({"sh", "-c", "kill -9 $$"}).exit), "signal 9");
}

TEST(ChildProcess, EndsAtItsDeadlineAndWhenItIsCancelled) {
  RunOptions late;
  late.deadline = steady_clock::now() + milliseconds(30);
  const ProgramRun run = must_run({"sleep", "600"}, late);
  EXPECT_EQ(run.end, ProgramRun::End::deadline);
  EXPECT_EQ(run.exit.signal, SIGKILL);
  RunOptions cancelled;
  int n_asked = 0;
  cancelled.is_cancelled = [&] { return ++n_asked == 3; };
  EXPECT_EQ(must_run({"sleep", "600"}, cancelled).end, ProgramRun::End::cancelled);
}

TEST(ChildProcess, EndsAtItsLimitOfOutputAndDropsErrorsBehindTheirs) {
  RunOptions options;
  options.max_output_bytes = 1000;
  const ProgramRun endless = must_run({"yes"}, options);
  EXPECT_EQ(endless.end, ProgramRun::End::output_limit);
  EXPECT_EQ(endless.output.size(), 1000u);
  options.max_error_bytes = 10;
  const ProgramRun loud =
      must_run({"sh", "-c", "i=0; while [ $i -lt 5000 ]; do echo 0123456789 >&2; i=$((i+1)); done; echo end"}, options);
  EXPECT_EQ(loud.end, ProgramRun::End::exited);
  EXPECT_EQ(loud.error, "0123456789");
  EXPECT_EQ(loud.output, "end\n");
}

TEST(ChildProcess, HasTheEnvironmentFolderAndLimitsItIsGiven) {
  const std::string folder = std::filesystem::canonical(fixture::scratch_folder());
  RunOptions options;
  options.child.folder = folder;
  options.child.environment = {{"COLOUR=red", "PATH=/usr/bin:/bin"}};
  options.child.limits = {uint64_t{1} << 30, 7, uint64_t{1} << 20, 33};
  const ProgramRun run =
      must_run({"sh", "-c", "pwd; echo $COLOUR $HOME; ulimit -v; ulimit -t; ulimit -f; ulimit -n"}, options);
  EXPECT_EQ(run.output, folder + "\nred\n1048576\n7\n2048\n33\n") << run.error;
  EXPECT_EQ(must_run({"env"},
                     [&] {
                       RunOptions bare;
                       bare.child.environment = {{"A=1"}};
                       return bare;
                     }())
                .output,
            "A=1\n");
}

TEST(ChildProcess, WhatCannotStartIsAnErrorThatSaysWhy) {
  const auto missing = run_program({"no-such-program-here"}, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::not_found);
  RunOptions nowhere;
  nowhere.child.folder = "/no/such/folder";
  const auto lost = run_program({"true"}, nowhere);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().message, "/no/such/folder: cannot enter the folder: No such file or directory");
  const std::string script = fixture::scratch_folder() / "script";
  std::ofstream(script) << "neither a program nor a script\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto unreadable = run_program({script}, {});
  ASSERT_FALSE(unreadable);
  EXPECT_NE(unreadable.error().message.find("cannot execute the program"), std::string::npos);
  EXPECT_FALSE(run_program({}, {}));
  EXPECT_FALSE(run_program({"echo", std::string("a\0b", 3)}, {}));
}

TEST(ChildProcess, ItsChildrenEndWithIt) {
  auto child = ChildProcess::start({"sh", "-c", "sleep 600 & echo $!; wait"});
  ASSERT_TRUE(child) << child.error().message;
  std::string output, error;
  while (output.find('\n') == std::string::npos) {
    ASSERT_TRUE(child->read_some(output, error, steady_clock::now() + milliseconds(100)));
  }
  const int grandchild = std::stoi(output);
  EXPECT_TRUE(is_running(grandchild));
  EXPECT_EQ(child->kill().signal, SIGKILL);
  EXPECT_TRUE(ends_soon(grandchild));
}

TEST(ChildProcess, WhatItLeavesBehindDoesNotHoldUpItsEnd) {
  const ProgramRun run = must_run({"sh", "-c", "sleep 600 & echo $!"});
  EXPECT_EQ(run.end, ProgramRun::End::exited);
  EXPECT_TRUE(run.exit.is_success());
  EXPECT_TRUE(ends_soon(std::stoi(run.output)));
}

TEST(ChildProcess, InheritsNoOpenFileAndNoIgnoredSignal) {
  const int handle = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as some libraries open theirs
  ASSERT_GT(handle, 2);
  EXPECT_EQ(must_run({"test", "-e", "/proc/self/fd/" + std::to_string(handle)}).exit.code, 1);
  EXPECT_EQ(must_run({"test", "-e", "/proc/self/fd/2"}).exit.code, 0);
  ::close(handle);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(must_run({"sh", "-c", "kill -PIPE $$; echo alive"}).exit.signal, SIGPIPE);
  std::signal(SIGPIPE, before);
}

TEST(ChildProcess, WritingToOneThatHasGoneIsAnErrorAndNoSignal) {
  auto child = ChildProcess::start({"true"});
  ASSERT_TRUE(child);
  ASSERT_TRUE(child->wait(steady_clock::now() + std::chrono::seconds(60)));
  const auto written = child->write_some("hello", steady_clock::now() + milliseconds(100));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "the program's input: cannot write: Broken pipe");
}

TEST(ChildProcess, SpeaksWithAProgramLineByLine) {
  auto child = ChildProcess::start({"cat"});
  ASSERT_TRUE(child);
  std::string output, error;
  for (const std::string line : {"one\n", "two\n"}) {
    ASSERT_EQ(*child->write_some(line, steady_clock::now() + std::chrono::seconds(60)), line.size());
    output.clear();
    while (output != line) ASSERT_TRUE(*child->read_some(output, error, steady_clock::now() + milliseconds(100)));
  }
  EXPECT_FALSE(child->wait(steady_clock::now()));
  child->close_input();
  ASSERT_TRUE(child->wait(steady_clock::now() + std::chrono::seconds(60)));
  EXPECT_FALSE(*child->read_some(output, error, steady_clock::now()));
  EXPECT_FALSE(child->write_some("three\n", steady_clock::now()));
}

TEST(ChildProcess, ManyThreadsStartProgramsAtOnce) {
  std::vector<std::thread> threads;
  std::array<int, 4> n_right{};
  for (size_t t = 0; t < n_right.size(); ++t) {
    threads.emplace_back([&n_right, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string word = std::to_string(t) + "-" + std::to_string(i);
        const auto run = run_program({"printf", "%s", word}, {});
        n_right[t] += run && run->output == word;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int n : n_right) EXPECT_EQ(n, 20);
}

TEST(ChildProcess, RootCanRunItAsAnother) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  RunOptions options;
  options.child.user = 65534;
  EXPECT_EQ(must_run({"id", "-u"}, options).output, "65534\n");
  EXPECT_EQ(must_run({"id", "-G"}, options).output, "65534\n");
}

}  // namespace
}  // namespace chimere
