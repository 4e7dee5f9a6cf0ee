// child_process.cpp  For Linux and other POSIX systems.
#include "base/platform/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/platform/io_error.h"

extern char** environ;

namespace chimere {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kPipeReadBytes = size_t{64} << 10;
constexpr milliseconds kCancelCheck{20};

// What the child does between its birth and its program, and what it could not do.
enum class Step : int { none, group, folder, limits, user, program };
struct StartFailure {
  Step step = Step::none;
  int number = 0;  // errno
};
constexpr std::array<const char*, 6> kStepNames = {"start",      "leave our process group", "enter the folder",
                                                   "set limits", "change the user",         "execute the program"};

// Everything the child needs, made before it is born: it shares our memory and may only make system calls.
struct Birth {
  const char* program;
  char* const* arguments;
  char* const* environment;
  const char* folder;  // null: stay
  std::array<std::pair<int, rlim_t>, 4> limits;
  size_t n_limits = 0;
  std::optional<uint32_t> user;
  std::array<int, 3> standard;  // pipes that become its handles 0, 1, 2
  int failure;                  // pipe for a StartFailure; closed by the start of the program
  sigset_t signals;             // our mask before all signals were blocked
};

void close_handle(int& handle) {
  if (handle >= 0) ::close(handle);
  handle = -1;
}

struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_handle(read);
    close_handle(write);
  }
  // Handles 0 to 2 are avoided, as the child's own take their place.
  Status open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return io_error("pipe", "cannot open", errno);
    for (int& end : ends) {
      if (end > 2) continue;
      const int moved = ::fcntl(end, F_DUPFD_CLOEXEC, 3);
      const int number = errno;
      ::close(end);
      end = moved;
      if (moved < 0) return io_error("pipe", "cannot open", number);
    }
    read = ends[0];
    write = ends[1];
    return Ok{};
  }
};

[[noreturn]] void fail_birth(const Birth& birth, Step step) {
  const StartFailure failure{step, errno};
  // A pipe takes so few bytes at once or not at all.
  [[maybe_unused]] const ssize_t n = ::write(birth.failure, &failure, sizeof failure);
  ::_exit(127);
}

// Closes every other handle at the start of the program, also those that a library opened without asking for it.
void keep_only_standard_handles() {
#if defined(SYS_close_range)
  constexpr unsigned kCloseOnExec = 1u << 2;  // CLOSE_RANGE_CLOEXEC
  if (::syscall(SYS_close_range, 3u, ~0u, kCloseOnExec) == 0) return;
#endif
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const int last = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20));
  for (int handle = 3; handle < last; ++handle) ::fcntl(handle, F_SETFD, FD_CLOEXEC);
}

[[noreturn]] void be_born(const Birth& birth) {
  struct sigaction as_usual = {};
  as_usual.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &as_usual, nullptr);  // ignored ones would stay so
  if (::setpgid(0, 0) != 0) fail_birth(birth, Step::group);
  for (int i = 0; i < 3; ++i) ::dup2(birth.standard[static_cast<size_t>(i)], i);
  keep_only_standard_handles();
  // Not by the C library's functions, which change the user of all threads: those in its list are our parent's.
  if (birth.user && (::syscall(SYS_setgroups, 0, nullptr) != 0 || ::syscall(SYS_setgid, *birth.user) != 0 ||
                     ::syscall(SYS_setuid, *birth.user) != 0)) {
    fail_birth(birth, Step::user);
  }
  if (birth.folder && ::chdir(birth.folder) != 0) fail_birth(birth, Step::folder);
  for (size_t i = 0; i < birth.n_limits; ++i) {
    const rlimit limit{birth.limits[i].second, birth.limits[i].second};
    if (::setrlimit(static_cast<decltype(RLIMIT_AS)>(birth.limits[i].first), &limit) != 0) {
      fail_birth(birth, Step::limits);
    }
  }
  ::sigprocmask(SIG_SETMASK, &birth.signals, nullptr);
  ::execve(birth.program, birth.arguments, birth.environment);
  fail_birth(birth, Step::program);
}

// Apart from start(), so that nothing of that is in registers that the child may change.
__attribute__((noinline)) pid_t give_birth(Birth& birth) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &birth.signals);  // no handler of ours may run in the child
  const pid_t pid = ::vfork();
  if (pid == 0) be_born(birth);
  const int number = errno;
  ::pthread_sigmask(SIG_SETMASK, &birth.signals, nullptr);
  errno = number;
  return pid;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void add_limit(Birth& birth, int resource, uint64_t value) {
  if (value != 0) birth.limits[birth.n_limits++] = {resource, value};
}

// Milliseconds for poll(), rounded up so that it never spins.
int poll_time(SteadyTime until) {
  const auto now = steady_clock::now();
  if (until <= now) return 0;
  if (until - now > std::chrono::hours(1)) return 3'600'000;
  return static_cast<int>(std::chrono::ceil<milliseconds>(until - now).count());
}

// write() to a pipe whose reader may have gone: an error and not a signal, whatever the rest of the process asked for.
ssize_t write_quietly(int handle, std::string_view bytes) {
  sigset_t broken, before, pending;
  ::sigemptyset(&broken);
  ::sigaddset(&broken, SIGPIPE);
  ::sigpending(&pending);
  ::pthread_sigmask(SIG_BLOCK, &broken, &before);
  const ssize_t n = ::write(handle, bytes.data(), bytes.size());
  const int number = errno;
  if (n < 0 && number == EPIPE && !::sigismember(&pending, SIGPIPE)) {
    const timespec now{};
    while (::sigtimedwait(&broken, nullptr, &now) < 0 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = number;
  return n;
}

bool is_later(int number) { return number == EAGAIN || number == EWOULDBLOCK || number == EINTR; }

}  // namespace

std::string describe(const ChildExit& exit) {
  return exit.signal != 0 ? "signal " + std::to_string(exit.signal) : "exit code " + std::to_string(exit.code);
}

std::string find_program(const std::string& name) {
  if (name.empty() || name.find('\0') != std::string::npos) return "";
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string candidate = std::string(rest.substr(0, end)) + "/" + name;
    if (end > 0 && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return "";
}

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& arguments, const ChildOptions& options) {
  if (arguments.empty()) return Error{Code::invalid_argument, "expected a program to start, found no argument"};
  for (const std::string& argument : arguments) {
    if (argument.find('\0') != std::string::npos) {
      return Error{Code::invalid_argument, arguments[0] + ": an argument contains a zero byte"};
    }
  }
  const std::string program = find_program(arguments[0]);
  if (program.empty()) return Error{Code::not_found, arguments[0] + ": no such program that may be executed"};

  std::vector<std::string> owned_arguments = arguments;
  std::vector<std::string> owned_environment = options.environment.value_or(std::vector<std::string>());
  const std::vector<char*> argv = pointers_to(owned_arguments);
  const std::vector<char*> envp = pointers_to(owned_environment);
  Pipe input, output, error, failure;
  for (Pipe* pipe : {&input, &output, &error, &failure}) TRY(pipe->open());

  Birth birth{};
  birth.program = program.c_str();
  birth.arguments = argv.data();
  birth.environment = options.environment ? envp.data() : environ;
  birth.folder = options.folder.empty() ? nullptr : options.folder.c_str();
  add_limit(birth, RLIMIT_AS, options.limits.address_bytes);
  add_limit(birth, RLIMIT_CPU, options.limits.cpu_seconds);
  add_limit(birth, RLIMIT_FSIZE, options.limits.file_bytes);
  add_limit(birth, RLIMIT_NOFILE, options.limits.open_files);
  birth.user = options.user;
  birth.standard = {input.read, output.write, error.write};
  birth.failure = failure.write;
  const pid_t pid = give_birth(birth);
  if (pid < 0) return io_error(arguments[0], "cannot start a process", errno);
  close_handle(failure.write);
  StartFailure failed;
  ssize_t n;
  do {
    n = ::read(failure.read, &failed, sizeof failed);
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(sizeof failed)) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    const std::string what = std::string("cannot ") + kStepNames[static_cast<size_t>(failed.step)];
    return io_error(failed.step == Step::folder ? options.folder : arguments[0], what.c_str(), failed.number);
  }
  ChildProcess child;
  child.pid_ = pid;
  child.input_ = std::exchange(input.write, -1);
  child.output_ = std::exchange(output.read, -1);
  child.error_ = std::exchange(error.read, -1);
  for (const int handle : {child.input_, child.output_, child.error_}) {
    ::fcntl(handle, F_SETFL, ::fcntl(handle, F_GETFL) | O_NONBLOCK);
  }
  return Result<ChildProcess>{std::move(child)};
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)),
      error_(std::exchange(other.error_, -1)),
      exit_(std::exchange(other.exit_, std::nullopt)) {}

ChildProcess::~ChildProcess() {
  if (pid_ >= 0) kill();
  close_handle(input_);
  close_handle(output_);
  close_handle(error_);
}

Result<size_t> ChildProcess::write_some(std::string_view bytes, SteadyTime until) {
  if (input_ < 0) return Error{Code::io, "the program's input is closed"};
  pollfd waiting{input_, POLLOUT, 0};
  if (::poll(&waiting, 1, poll_time(until)) <= 0) return size_t{0};
  const ssize_t n = write_quietly(input_, bytes);
  if (n >= 0) return static_cast<size_t>(n);
  if (is_later(errno)) return size_t{0};
  return io_error("the program's input", "cannot write", errno);
}

void ChildProcess::close_input() { close_handle(input_); }

bool ChildProcess::read_from(int& handle, std::string& into) {
  std::array<char, kPipeReadBytes> bytes;
  const ssize_t n = ::read(handle, bytes.data(), bytes.size());
  if (n > 0) into.append(bytes.data(), static_cast<size_t>(n));
  if (n == 0) close_handle(handle);
  return n >= 0 || is_later(errno);
}

Result<bool> ChildProcess::read_some(std::string& output, std::string& error, SteadyTime until) {
  return move_bytes(nullptr, output, error, until);
}

Result<bool> ChildProcess::exchange(std::string_view& input, std::string& output, std::string& error,
                                    SteadyTime until) {
  if (input.empty()) close_input();
  return move_bytes(input.empty() ? nullptr : &input, output, error, until);
}

Result<bool> ChildProcess::move_bytes(std::string_view* input, std::string& output, std::string& error,
                                      SteadyTime until) {
  if (output_ < 0 && error_ < 0) return false;
  // poll() passes over handles below zero.
  std::array<pollfd, 3> waiting = {{{output_, POLLIN, 0}, {error_, POLLIN, 0}, {input ? input_ : -1, POLLOUT, 0}}};
  const int n_ready = ::poll(waiting.data(), waiting.size(), poll_time(until));
  if (n_ready < 0 && errno != EINTR) return io_error("the program's output", "cannot wait", errno);
  if (n_ready <= 0) return true;
  if (waiting[2].revents != 0) {
    const ssize_t n = write_quietly(input_, input->substr(0, kPipeReadBytes));
    if (n > 0) input->remove_prefix(static_cast<size_t>(n));
    // A program may end or answer without having read everything: that is no error of ours.
    if (n < 0 && !is_later(errno)) *input = {};
  }
  const bool is_read =
      (waiting[0].revents == 0 || read_from(output_, output)) && (waiting[1].revents == 0 || read_from(error_, error));
  if (!is_read) return io_error("the program's output", "cannot read", errno);
  return output_ >= 0 || error_ >= 0;
}

// What is left of the group is killed while its leader is still there to keep the number from another.
ChildExit ChildProcess::reap() {
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  ChildExit exit;
  if (WIFSIGNALED(status)) {
    exit.signal = WTERMSIG(status);
  } else {
    exit.code = WEXITSTATUS(status);
  }
  exit_ = exit;
  return exit;
}

std::optional<ChildExit> ChildProcess::wait(SteadyTime until) {
  if (exit_) return exit_;
  for (milliseconds pause{1};; pause = std::min(pause * 2, milliseconds(10))) {
    siginfo_t info{};
    // Without taking its status: a leader that was taken no longer holds its group's number.
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno != EINTR) {
      return reap();
    }
    if (info.si_pid == pid_) return reap();
    const auto now = steady_clock::now();
    if (now >= until) return std::nullopt;
    std::this_thread::sleep_for(std::min<steady_clock::duration>(pause, until - now));
  }
}

void ChildProcess::pause() const {
  if (pid_ > 0 && !exit_) ::kill(-pid_, SIGTSTP);
}

void ChildProcess::resume() const {
  if (pid_ > 0 && !exit_) ::kill(-pid_, SIGCONT);
}

ChildExit ChildProcess::kill() { return exit_ ? *exit_ : reap(); }

Result<ProgramRun> run_program(const std::vector<std::string>& arguments, const RunOptions& options) {
  TRY_ASSIGN(ChildProcess child, ChildProcess::start(arguments, options.child));
  ProgramRun run;
  std::string_view input = options.input;
  const auto stop = [&](ProgramRun::End end) {
    run.end = end;
    run.exit = child.kill();
    run.output.resize(std::min<size_t>(run.output.size(), options.max_output_bytes));
    return Result<ProgramRun>{std::move(run)};
  };
  for (bool is_open = true;;) {
    if (options.is_cancelled()) return stop(ProgramRun::End::cancelled);
    const auto now = steady_clock::now();
    if (now >= options.deadline) return stop(ProgramRun::End::deadline);
    const SteadyTime until = std::min(now + kCancelCheck, options.deadline);
    if (is_open) {
      const size_t n_before = run.output.size() + run.error.size() + input.size();
      TRY_ASSIGN(is_open, child.exchange(input, run.output, run.error, until));
      // A process that it left behind may hold its outputs open for ever; wait() ends those.
      if (n_before == run.output.size() + run.error.size() + input.size()) child.wait(now);
      run.error.resize(std::min<size_t>(run.error.size(), options.max_error_bytes));
      if (run.output.size() > options.max_output_bytes) return stop(ProgramRun::End::output_limit);
    } else if (const auto exit = child.wait(until)) {
      run.exit = *exit;
      return Result<ProgramRun>{std::move(run)};
    }
  }
}

}  // namespace chimere
