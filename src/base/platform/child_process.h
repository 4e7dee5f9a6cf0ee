// child_process.h  Another program, started by its list of arguments: never through a shell, with limits, and with an end.
//
// It leads a process group of its own, so that whatever it starts ends with it, and inherits no open file but its three
// pipes. Starting it does not copy our memory map, which would stop a process with a large model for many milliseconds.
//
//   run_program({"pdftotext", "-q", path, "-"}, options)    from its start to its end
//   ChildProcess                                            one that is spoken with
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere {

using SteadyTime = std::chrono::steady_clock::time_point;

// What each process of the program may use at most; 0 where our own limits hold.
struct ChildLimits {
  uint64_t address_bytes = 0;
  uint64_t cpu_seconds = 0;
  uint64_t file_bytes = 0;  // of a file that it writes
  uint64_t open_files = 0;
};

struct ChildOptions {
  std::string folder = {};                                   // it works in; empty: ours
  std::optional<std::vector<std::string>> environment = {};  // "NAME=value" each; nullopt: ours
  ChildLimits limits = {};
  std::optional<uint32_t> user = {};  // user and group it becomes; only root can ask for it
};

// How it ended: `code` where it ended by itself, else `signal`.
struct ChildExit {
  int code = 0;
  int signal = 0;
  bool is_success() const { return code == 0 && signal == 0; }
};
// "exit code 2", "signal 9"
std::string describe(const ChildExit& exit);

// The file that a program's name stands for: a name without a slash is looked up in PATH. Empty when there is none that
// may be executed.
std::string find_program(const std::string& name);

// One thread may write to it while another reads from it; everything else is one thread's. Its end kills the whole group.
class ChildProcess {
 public:
  // arguments[0] is the program. Errors of the child before it is that program (no such folder, not executable) are
  // errors of this call.
  static Result<ChildProcess> start(const std::vector<std::string>& arguments, const ChildOptions& options = {});

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  // Writes what fits into the pipe, and waits until `until` for room. How many bytes; an error once it reads no more.
  Result<size_t> write_some(std::string_view bytes, SteadyTime until);
  void close_input();

  // Waits until `until` for output and appends what is there, at most 64 KiB each. False once both outputs have ended.
  Result<bool> read_some(std::string& output, std::string& error, SteadyTime until);

  // The same, while `input` is written and shortened by what was; the child's input is closed when it is empty.
  Result<bool> exchange(std::string_view& input, std::string& output, std::string& error, SteadyTime until);

  // How it ended; nullopt while it runs on at `until`. Kills what it left running, then.
  std::optional<ChildExit> wait(SteadyTime until);
  // Asks its whole group to stand still (SIGTSTP), at once or where it holds nothing that others wait for (stand_still.h);
  // lets it go on. Whoever is told both at nearly the same time may stand still: tell it again.
  void pause() const;
  void resume() const;
  // Kills all of its group and waits for its own end.
  ChildExit kill();

 private:
  ChildProcess() = default;
  Result<bool> move_bytes(std::string_view* input, std::string& output, std::string& error, SteadyTime until);
  bool read_from(int& handle, std::string& into);
  ChildExit reap();

  int pid_ = -1;    // -1 once moved from
  int input_ = -1;  // handles of our ends of the pipes; -1 once closed
  int output_ = -1;
  int error_ = -1;
  std::optional<ChildExit> exit_;  // once it was reaped
};

struct RunOptions {
  ChildOptions child = {};
  std::string_view input = {};
  uint64_t max_output_bytes = 1 << 20;  // more than that ends the program
  uint64_t max_error_bytes = 16 << 10;  // more than that is read and dropped
  SteadyTime deadline = SteadyTime::max();
  std::function<bool()> is_cancelled = [] { return false; };  // asked every 20 ms
};

struct ProgramRun {
  enum class End { exited, output_limit, deadline, cancelled };
  End end = End::exited;
  ChildExit exit;
  std::string output;  // at most max_output_bytes, also where the program was ended
  std::string error;
};

// Runs a program to its end, or to the first limit it meets; an error only where it could not be started or read.
Result<ProgramRun> run_program(const std::vector<std::string>& arguments, const RunOptions& options);

}  // namespace chimere
