// mcp_program.cpp  A server of tools that is a program of this machine: one line each way is a message.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "base/platform/child_process.h"
#include "tools/mcp_transport.h"

namespace chimere::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kWake{20};         // how often cancellation and the end are looked for
constexpr milliseconds kReplyTime{1000};  // for our answer to what a server asks
constexpr milliseconds kFarewell{300};    // from the end of its input to its own end
constexpr size_t kKeptErrorBytes = 2048;  // of what it last wrote to its standard error

// Without what else this process was given: keys of services are often in the environment.
std::vector<std::string> server_environment(const McpServerConfig& config) {
  std::vector<std::string> all;
  for (const char* name : {"PATH", "HOME", "LANG", "TMPDIR", "USER"}) {
    if (const char* value = std::getenv(name)) all.push_back(std::string(name) + "=" + value);
  }
  for (const auto& [name, value] : config.env) all.push_back(name + "=" + value);
  return all;
}

class ProgramTransport : public McpTransport {
 public:
  ProgramTransport(ChildProcess child, Listener listener) : child_(std::move(child)), listener_(std::move(listener)) {
    reader_ = std::thread([this] { read(); });
  }

  ~ProgramTransport() override {
    is_ending_ = true;
    reader_.join();
    child_.close_input();
    child_.wait(steady_clock::now() + kFarewell);
  }

  Result<RpcMessage> request(int64_t id, const std::string& message, const ToolContext& context) override {
    {
      const std::lock_guard lock(mutex_);
      if (!problem_.empty()) return Error{Code::io, problem_};
      waiting_.emplace(id, std::nullopt);
    }
    const Status sent = send(message, context);
    for (;;) {
      const Status wanted = sent ? still_wanted(context) : sent;
      std::unique_lock lock(mutex_);
      const auto waiting = waiting_.find(id);
      if (!waiting->second && wanted && problem_.empty()) answered_.wait_for(lock, kWake);
      std::optional<Result<RpcMessage>> outcome;
      if (waiting->second) {
        outcome = std::move(*waiting->second);
      } else if (!problem_.empty()) {
        outcome = Error{Code::io, problem_};
      } else if (!wanted) {
        outcome = wanted.error();
      }
      if (!outcome) continue;
      waiting_.erase(waiting);
      return std::move(*outcome);
    }
  }

  Status notify(const std::string& message, const ToolContext& context) override { return send(message, context); }
  void set_version(const std::string&) override {}

  std::string problem() const override {
    const std::lock_guard lock(mutex_);
    return problem_;
  }

 private:
  // A message that was begun is finished, or else nothing more is sent: half a line would spoil the next one.
  Status send(const std::string& message, const ToolContext& context) {
    if (message.size() > kMaxRpcBytes) {
      return Error{Code::invalid_argument, "the message has more than " + std::to_string(kMaxRpcBytes) + " bytes"};
    }
    const std::string line = message + "\n";
    const std::lock_guard lock(write_mutex_);
    for (size_t n_sent = 0; n_sent < line.size();) {
      const Status wanted = still_wanted(context);
      if (!wanted || is_ending_) {
        if (n_sent > 0) fail("a message to it could not be finished");
        return wanted ? Status(Error{Code::cancelled, "the connection is ending"}) : wanted;
      }
      auto n = child_.write_some(std::string_view(line).substr(n_sent), steady_clock::now() + kWake);
      if (!n) {
        fail(n.error().message);
        return n.error();
      }
      n_sent += *n;
    }
    return Ok{};
  }

  void fail(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (problem_.empty()) problem_ = why;
    answered_.notify_all();
  }

  void read() {
    LineFrames frames;
    std::string output, error;
    for (bool is_open = true; is_open && !is_ending_;) {
      const auto read = child_.read_some(output, error, steady_clock::now() + kWake);
      is_open = read && *read;
      if (error.size() > kKeptErrorBytes) error.erase(0, error.size() - kKeptErrorBytes);
      const Status cut = frames.push(output, [this](std::string_view line) { take(line); });
      output.clear();
      if (!cut) {
        fail(cut.error().message);
        return;
      }
    }
    if (is_ending_) return;
    const auto exit = child_.wait(steady_clock::now() + kFarewell);
    std::string why = exit ? "the program ended with " + describe(*exit) : "the program closed its output";
    while (!error.empty() && (error.back() == '\n' || error.back() == '\r')) error.pop_back();
    if (!error.empty()) why += ": " + error.substr(error.rfind('\n') + 1);
    fail(why);
  }

  void take(std::string_view line) {
    auto message = parse_rpc(line);
    if (!message) return;  // programs print other things, too; a request that misses its answer runs into its deadline
    if (message->is_response()) {
      const std::lock_guard lock(mutex_);
      if (!message->id.is_number_integer()) return;
      const auto found = waiting_.find(message->id.get<int64_t>());
      if (found == waiting_.end()) return;  // of a call that was given up
      found->second = std::move(*message);
      answered_.notify_all();
      return;
    }
    const std::string reply = listener_(*message);
    if (reply.empty()) return;
    ToolContext soon;
    soon.deadline = steady_clock::now() + kReplyTime;
    if (const Status sent = send(reply, soon); !sent) fail(sent.error().message);
  }

  ChildProcess child_;
  const Listener listener_;
  std::atomic<bool> is_ending_{false};
  std::mutex write_mutex_;
  mutable std::mutex mutex_;  // of what follows; never held while anything is written or read
  std::condition_variable answered_;
  std::map<int64_t, std::optional<RpcMessage>> waiting_;
  std::string problem_;
  std::thread reader_;
};

}  // namespace

Status still_wanted(const ToolContext& context) {
  if (context.is_cancelled()) return Error{Code::cancelled, "the call was cancelled"};
  if (steady_clock::now() >= context.deadline) return Error{Code::cancelled, "the call had no time left"};
  return Ok{};
}

Result<std::unique_ptr<McpTransport>> start_program_transport(const McpServerConfig& config,
                                                              McpTransport::Listener listener) {
  ChildOptions options;
  options.environment = server_environment(config);
  TRY_ASSIGN(ChildProcess child, ChildProcess::start(config.command, options));
  return Result<std::unique_ptr<McpTransport>>{
      std::make_unique<ProgramTransport>(std::move(child), std::move(listener))};
}

}  // namespace chimere::tools
