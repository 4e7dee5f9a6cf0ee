// mcp_client.h  A server of tools (Model Context Protocol): its tools as ours, and its life.
//
// It is started by the first use and again by a use behind its end: at once if it had answered, else after a pause that
// doubles with every failure. What it says is never trusted: descriptions and schemas are limited, results are marked.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/mcp_config.h"
#include "tools/tool.h"
#include "tools/toolbox.h"

namespace chimere::tools {

inline constexpr size_t kMaxToolsPerServer = 128;
inline constexpr size_t kMaxToolDescriptionBytes = 4096;

struct McpClientOptions {
  std::string version = "0";                     // ours, which the server is told
  std::chrono::milliseconds start_time{20'000};  // for the start, the greeting and the list of tools
  std::chrono::milliseconds call_time{120'000};  // for a call, where its deadline is not nearer
  std::chrono::milliseconds first_pause{1'000};
  std::chrono::milliseconds last_pause{60'000};
};

// What a person is shown.
struct McpServerStatus {
  std::string name;
  bool is_connected = false;
  std::string server = {};   // the name and version that it gave
  std::string version = {};  // of the protocol
  size_t n_tools = 0;
  std::string problem = {};  // why it is not connected, or which tools were left out
  uint64_t n_starts = 0;
  Policy policy = Policy::ask;          // of its tools, where none has its own
  std::vector<std::string> tools = {};  // by our names, those in the toolbox
};

// A tool as its server names it, and as we do.
struct McpOffer {
  std::string remote_name;
  ToolSpec spec;
};

class McpClient : public std::enable_shared_from_this<McpClient> {
 public:
  explicit McpClient(McpServerConfig config, McpClientOptions options = {});
  ~McpClient();

  const McpServerConfig& config() const { return config_; }

  // Its tools, named `server__tool`; asks for them where that was not done yet or where the server said that they changed.
  Result<std::vector<std::shared_ptr<Tool>>> tools(const ToolContext& context);
  // Whether tools() would ask.
  bool is_stale() const;

  // Calls a tool by the server's own name for it. Any thread, several at once.
  ToolResult call(const std::string& tool, const std::string& arguments, const ToolContext& context);

  McpServerStatus status() const;

 private:
  struct Session;
  using SessionPtr = std::shared_ptr<Session>;

  Result<SessionPtr> connect(const ToolContext& context);
  Result<SessionPtr> connect_alone(const ToolContext& context);
  Result<SessionPtr> greet(const ToolContext& context);
  void note_end(const SessionPtr& session, const std::string& why);
  std::chrono::milliseconds pause() const;

  const McpServerConfig config_;
  const McpClientOptions options_;
  mutable std::mutex mutex_;  // of what follows
  bool is_starting_ = false;  // one thread at a time looks whether a start is due
  std::condition_variable started_;
  SessionPtr session_;
  std::vector<McpOffer> offers_;
  std::string problem_;
  uint64_t n_failures_ = 0;  // since the last answer
  uint64_t n_starts_ = 0;
  std::chrono::steady_clock::time_point next_start_{};
};

// All configured servers, and their tools in a toolbox.
class McpServers {
 public:
  McpServers(const std::vector<McpServerConfig>& configs, Toolbox& toolbox, const McpClientOptions& options = {});

  // Puts new tools into the toolbox and takes those out that are gone, of servers that said so or were not asked yet. A
  // server that cannot be reached keeps its place; status() says why. Those whose list was read anew, by their status.
  // A tool that comes back is denied, or asks, where it did before it went.
  std::vector<McpServerStatus> refresh(const ToolContext& context);
  std::vector<McpServerStatus> status() const;

 private:
  struct Place {
    std::shared_ptr<McpClient> client;
    std::vector<std::string> names = {};        // of its tools in the toolbox
    std::string problem = {};                   // of tools that found no place there
    std::map<std::string, Policy> strict = {};  // of those that are gone, where it was stricter than the server's
  };
  void put_into_toolbox(Place& place, const std::vector<std::shared_ptr<Tool>>& tools);

  Toolbox& toolbox_;
  std::mutex refreshing_;     // one at a time, and it may take long
  mutable std::mutex mutex_;  // of names and problems
  std::vector<Place> places_;
};

}  // namespace chimere::tools
