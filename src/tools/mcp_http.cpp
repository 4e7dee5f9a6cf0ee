// mcp_http.cpp  A server of tools behind an address: "streamable HTTP" of the protocol.
#include <algorithm>
#include <mutex>

#include "tools/mcp_transport.h"
#include "web/http_client.h"

namespace chimere::tools {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFarewellTime{2000};
constexpr size_t kMaxSessionIdBytes = 1024;
constexpr size_t kMaxStreamBytes = 4 * kMaxRpcBytes;  // of all messages that come before an answer

class HttpTransport : public McpTransport {
 public:
  HttpTransport(const McpServerConfig& config, Listener listener)
      : client_({}), url_(config.url), listener_(std::move(listener)) {
    for (const auto& [name, value] : config.headers) headers_.push_back({name, value});
  }

  // Tells the server that nobody will come back to its session.
  ~HttpTransport() override {
    if (session().empty()) return;
    web::HttpRequest request = new_request();
    request.method = "DELETE";
    request.limits.total = kFarewellTime;
    (void)client_.exchange(request);
  }

  Result<RpcMessage> request(int64_t id, const std::string& message, const ToolContext& context) override {
    std::optional<RpcMessage> answer;
    const auto take = [&](std::string_view text) {
      auto heard = parse_rpc(text);
      if (!heard) return;
      if (!heard->is_response()) {
        // At once: the server may wait for it before it goes on.
        const std::string reply = listener_(*heard);
        if (!reply.empty()) (void)notify(reply, context);
      } else if (heard->id.is_number_integer() && heard->id.get<int64_t>() == id) {
        answer = std::move(*heard);
      }
    };
    TRY(post(message, context, take, [&answer] { return answer.has_value(); }));
    if (!answer) return Error{Code::io, "the server's answer has no response to the request"};
    return Result<RpcMessage>{std::move(*answer)};
  }

  Status notify(const std::string& message, const ToolContext& context) override {
    return post(
        message, context, [](std::string_view) {}, [] { return true; });
  }

  void set_version(const std::string& version) override {
    const std::lock_guard lock(mutex_);
    version_ = version;
  }

  std::string problem() const override {
    const std::lock_guard lock(mutex_);
    return problem_;
  }

 private:
  std::string session() const {
    const std::lock_guard lock(mutex_);
    return session_;
  }

  web::HttpRequest new_request() const {
    web::HttpRequest request;
    request.url = url_;
    request.headers = headers_;
    request.limits.body_bytes = kMaxStreamBytes;
    const std::lock_guard lock(mutex_);
    if (!session_.empty()) request.headers.push_back({"Mcp-Session-Id", session_});
    if (!version_.empty()) request.headers.push_back({"MCP-Protocol-Version", version_});
    return request;
  }

  // Hands each message of the answer to `take`, until `is_done`.
  Status post(const std::string& message, const ToolContext& context, const std::function<void(std::string_view)>& take,
              const std::function<bool()>& is_done) {
    TRY(still_wanted(context));
    web::HttpRequest request = new_request();
    request.method = "POST";
    request.body = message;
    request.headers.push_back({"Content-Type", "application/json"});
    request.headers.push_back({"Accept", "application/json, text/event-stream"});
    request.limits.total = milliseconds(0);
    request.is_cancelled = [&context] { return !still_wanted(context); };
    bool is_stream = false;
    std::string body;
    EventFrames events;
    request.on_head = [&](const web::HttpAnswer& head) -> Status {
      TRY(check_status(head));
      is_stream = head.header("content-type").substr(0, 17) == "text/event-stream";
      keep_session(std::string(head.header("mcp-session-id")));
      return Ok{};
    };
    request.on_body = [&](std::string_view bytes) -> Status {
      if (!is_stream) {
        body.append(bytes);
        return Ok{};
      }
      TRY(events.push(bytes, take));
      // The stream may stay open behind what we wanted; this ends it.
      return is_done() ? Status(Error{Code::cancelled, "all was read"}) : Status(Ok{});
    };
    const auto answer = client_.exchange(request);
    if (!answer && !(is_stream && is_done())) {
      const Status wanted = still_wanted(context);
      return wanted ? Status(answer.error()) : wanted;
    }
    if (!is_stream && !body.empty()) take(body);
    return Ok{};
  }

  Status check_status(const web::HttpAnswer& head) {
    if (head.status >= 200 && head.status < 300) return Ok{};
    const std::string what = "the server answered with status " + std::to_string(head.status);
    const std::lock_guard lock(mutex_);
    if (head.status == 404 && !session_.empty()) {  // so the protocol says that a session has ended
      problem_ = what + ": the session has ended";
      session_.clear();
    }
    return Error{Code::io, what};
  }

  void keep_session(const std::string& id) {
    const bool is_sound = std::all_of(id.begin(), id.end(), [](char c) { return c >= 0x21 && c <= 0x7E; });
    if (id.empty() || id.size() > kMaxSessionIdBytes || !is_sound) return;
    const std::lock_guard lock(mutex_);
    session_ = id;
  }

  const web::HttpClient client_;
  const std::string url_;
  std::vector<web::HttpHeader> headers_;
  const Listener listener_;
  mutable std::mutex mutex_;
  std::string session_;
  std::string version_;
  std::string problem_;
};

}  // namespace

std::unique_ptr<McpTransport> make_http_transport(const McpServerConfig& config, McpTransport::Listener listener) {
  return std::make_unique<HttpTransport>(config, std::move(listener));
}

}  // namespace chimere::tools
