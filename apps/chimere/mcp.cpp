// mcp.cpp  `chimere mcp`: the tools of a running server for programs that speak the Model Context Protocol over pipes.
//
//   the program  --line-->  chimere mcp  --POST /mcp-->  chimere serve
//
// Nothing is opened here: documents, notes and the model stay with the one process that has them, and so do keys, owners
// and policies. Requests run side by side, as many as there are threads; the next line is read when one is free.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/job_threads.h"
#include "commands.h"
#include "common.h"
#include "server_client.h"
#include "terminal/signals.h"
#include "tools/rpc.h"

namespace chimere::apps {
namespace {

constexpr int kCallsAtOnce = 8;
constexpr int kLookForSignals = 500;  // milliseconds
constexpr int kRpcInternal = -32603;
constexpr const char* kCancelled = "notifications/cancelled";

// A signal may come to any thread; each one ends the program.
bool is_ended() {
  static std::atomic<bool> was_interrupted{false};
  if (take_interrupt()) was_interrupted = true;
  return was_interrupted || asked_to_end();
}

using Flag = std::shared_ptr<std::atomic<bool>>;

class McpRelay {
 public:
  explicit McpRelay(const ServerAddress& address) : server_(address, "--url"), threads_(kCallsAtOnce) {}

  // Until standard input ends; then until all is answered.
  Status run() {
    tools::LineFrames frames;
    std::array<char, 1 << 16> bytes;
    while (!is_ended()) {
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (poll(&input, 1, kLookForSignals) <= 0) continue;
      const ssize_t n = read(STDIN_FILENO, bytes.data(), bytes.size());
      if (n == 0) break;
      if (n < 0 && errno != EINTR && errno != EAGAIN) return Error{Code::io, "standard input can not be read"};
      if (n < 0) continue;
      TRY(frames.push({bytes.data(), static_cast<size_t>(n)},
                      [this](std::string_view line) { take(std::string(line)); }));
    }
    std::unique_lock lock(mutex_);
    is_done_.wait(lock, [this] { return n_open_ == 0; });
    return Ok{};
  }

 private:
  void take(std::string line) {
    const auto message = tools::parse_rpc(line);
    const bool is_request = message && message->is_request();
    const std::string id = is_request ? to_text(message->id) : "";
    if (message && message->method == kCancelled && message->params.contains("requestId")) {
      return cancel(to_text(message->params["requestId"]));
    }
    const auto is_left = std::make_shared<std::atomic<bool>>(false);
    {
      std::unique_lock lock(mutex_);
      is_done_.wait(lock, [this] { return n_open_ < kCallsAtOnce; });
      ++n_open_;
      if (is_request) open_[id] = is_left;
    }
    threads_.post([this, line = std::move(line), request = is_request ? message->id : Json(), id, is_left] {
      relay(line, request, is_left);
      const std::lock_guard lock(mutex_);
      --n_open_;
      if (const auto open = open_.find(id); open != open_.end() && open->second == is_left) open_.erase(open);
      is_done_.notify_all();
    });
  }

  void cancel(const std::string& id) {
    const std::lock_guard lock(mutex_);
    if (const auto open = open_.find(id); open != open_.end()) *open->second = true;
  }

  // `request`: its id; null where no reply is due.
  void relay(const std::string& line, const Json& request, const Flag& is_left) {
    auto reply = server_.post("/mcp", line, [is_left] { return is_left->load() || is_ended(); });
    if (*is_left) return;  // who cancelled waits for nothing
    if (!reply && request.is_null()) {
      std::fprintf(stderr, "chimere: %s\n", reply.error().message.c_str());
      return;
    }
    const std::string text = reply ? *reply : tools::rpc_failure(request, kRpcInternal, reply.error().message);
    if (text.empty()) return;
    const std::lock_guard lock(writing_);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fputc('\n', stdout);
    std::fflush(stdout);
  }

  const ServerClient server_;
  std::mutex writing_;  // one line at a time
  std::mutex mutex_;    // guards all below
  std::condition_variable is_done_;
  int n_open_ = 0;
  std::map<std::string, Flag> open_;  // by the text of the id
  JobThreads threads_;                // ends first
};

}  // namespace

void add_mcp(CLI::App& app, Outcome& outcome) {
  auto address = std::make_shared<ServerAddress>();
  CLI::App* command = app.add_subcommand("mcp",
                                         "The tools of a running server (retrieve, remember, forget, web_search) for "
                                         "programs that start a server of tools "
                                         "(Model Context Protocol over standard input and output)");
  command->add_option("--url", address->url, "address of the server")->capture_default_str();
  add_server_options(*command, *address);
  command->callback([address, &outcome] {
    catch_signals();
    McpRelay relay(*address);
    if (Status s = relay.run(); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
