// mcp_transport.h  How messages reach a server of tools, and its answers us: a program's pipes, or HTTP. For .cpp files.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tools/mcp_config.h"
#include "tools/rpc.h"
#include "tools/tool.h"

namespace chimere::tools {

class McpTransport {
 public:
  // Hears the requests and notifications that the server sends by itself, and says what to answer; empty: nothing. It
  // must not call the transport.
  using Listener = std::function<std::string(const RpcMessage&)>;

  virtual ~McpTransport() = default;

  // Any thread, several at once. The response with that id, whichever it is; an error where none came in time.
  virtual Result<RpcMessage> request(int64_t id, const std::string& message, const ToolContext& context) = 0;
  virtual Status notify(const std::string& message, const ToolContext& context) = 0;

  // The version of the protocol that both sides agreed on.
  virtual void set_version(const std::string& version) = 0;

  // Why no request will be answered any more; empty while they may be.
  virtual std::string problem() const = 0;
};

// Starts the program of `config`; each message is a line.
Result<std::unique_ptr<McpTransport>> start_program_transport(const McpServerConfig& config,
                                                              McpTransport::Listener listener);

// Speaks with the address of `config`: each message is a POST, answered by JSON or by a stream of events. The stream
// that a server may offer for messages at any other time is not asked for.
std::unique_ptr<McpTransport> make_http_transport(const McpServerConfig& config, McpTransport::Listener listener);

// What ended a wait: nothing yet, or the caller's deadline or wish.
Status still_wanted(const ToolContext& context);

}  // namespace chimere::tools
