// rpc.h  JSON-RPC 2.0, as the Model Context Protocol uses it: messages, and the two ways they come in a stream of bytes.
// For .cpp files: JSON is heavy.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "text/json.h"

namespace chimere::tools {

inline constexpr size_t kMaxRpcBytes = size_t{8} << 20;  // of one message

inline constexpr int kRpcParseError = -32700;
inline constexpr int kRpcInvalidRequest = -32600;
inline constexpr int kRpcUnknownMethod = -32601;
inline constexpr int kRpcInvalidParams = -32602;

struct RpcError {
  int code = 0;
  std::string message;
};

// A request (method and id), a notification (method alone) or a response (id and either result or error).
struct RpcMessage {
  Json id;             // a string or an integer; null where there is none
  std::string method;  // empty in a response
  Json params;         // an object; null where there are none
  Json result;
  std::optional<RpcError> error;

  bool is_response() const { return method.empty(); }
  bool is_request() const { return !method.empty() && !id.is_null(); }
};

// Errors have the code corrupt where the text is no JSON, invalid_argument where it is no message.
Result<RpcMessage> parse_rpc(std::string_view text);

// Each is one line without its end.
std::string rpc_request(const Json& id, const std::string& method, Json params);
std::string rpc_notification(const std::string& method, Json params);
std::string rpc_result(const Json& id, Json result);
std::string rpc_failure(const Json& id, int code, const std::string& message);

// Cuts a stream into its lines.
class LineFrames {
 public:
  // Hands out each complete line that is not empty. An error once a line is longer than a message may be.
  Status push(std::string_view bytes, const std::function<void(std::string_view)>& take);

 private:
  std::string line_;  // what came behind the last end of a line
};

// Cuts a stream of server-sent events into their data.
class EventFrames {
 public:
  Status push(std::string_view bytes, const std::function<void(std::string_view)>& take);

 private:
  void take_line(std::string_view line, const std::function<void(std::string_view)>& take);
  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool was_return_ = false;  // the last byte was a CR: an LF behind it belongs to it
};

}  // namespace chimere::tools
