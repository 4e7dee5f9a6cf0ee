#include "tools/mcp_client.h"

#include <algorithm>
#include <set>
#include <utility>

#include "text/utf8.h"
#include "tools/arguments.h"
#include "tools/mcp_content.h"
#include "tools/mcp_transport.h"

namespace chimere::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kMaxListPages = 64;
constexpr size_t kMaxCursorBytes = 4096;
constexpr milliseconds kCancelTime{500};  // for telling a server that a call was given up

// The context, with no more time than that.
ToolContext within(const ToolContext& context, milliseconds time) {
  ToolContext limited = context;
  limited.deadline = std::min(context.deadline, steady_clock::now() + time);
  return limited;
}

class McpTool : public Tool {
 public:
  McpTool(std::shared_ptr<McpClient> client, std::string remote_name, ToolSpec spec)
      : client_(std::move(client)), remote_name_(std::move(remote_name)), spec_(std::move(spec)) {}
  const ToolSpec& spec() const override { return spec_; }
  ToolResult run(const std::string& arguments, const ToolContext& context) override {
    return client_->call(remote_name_, arguments, context);
  }

 private:
  std::shared_ptr<McpClient> client_;
  std::string remote_name_;
  ToolSpec spec_;
};

std::string text_at(const Json& object, const char* name, size_t max_bytes) {
  std::string text = text_argument(object, name);
  if (text.size() > max_bytes) {
    text.resize(max_bytes);
    text.resize(text.size() - incomplete_utf8(text));
  }
  return text;
}

// What of a server's list can be used; `left_out` says what cannot, and why.
std::vector<McpOffer> offers_of(const std::string& server, const std::vector<Json>& listed, std::string& left_out) {
  std::vector<McpOffer> offers;
  std::set<std::string> names;
  const auto leave_out = [&left_out](const std::string& what) {
    if (left_out.size() < 1000) left_out += (left_out.empty() ? "left out: " : "; ") + what;
  };
  for (const Json& tool : listed) {
    const std::string remote = tool.is_object() ? text_at(tool, "name", 256) : "";
    if (remote.empty() || !tool.contains("inputSchema") || !tool["inputSchema"].is_object()) {
      leave_out("'" + remote + "', which has no name or no schema");
      continue;
    }
    if (offers.size() == kMaxToolsPerServer) {
      leave_out("all behind the first " + std::to_string(kMaxToolsPerServer));
      break;
    }
    ToolSpec spec{mcp_tool_name(server, remote, names), text_at(tool, "description", kMaxToolDescriptionBytes),
                  to_text(tool["inputSchema"])};
    if (spec.parameters.size() > kMaxSchemaBytes) {
      leave_out("'" + remote + "', whose schema is longer than " + std::to_string(kMaxSchemaBytes) + " bytes");
      continue;
    }
    names.insert(spec.name);
    offers.push_back({remote, std::move(spec)});
  }
  return offers;
}

}  // namespace

struct McpClient::Session {
  // Heard by the transport's own thread, which therefore must never be the last to hold the session.
  struct Heard {
    std::atomic<bool> has_new_list{true};
  };
  const std::shared_ptr<Heard> heard = std::make_shared<Heard>();
  std::unique_ptr<McpTransport> transport;
  std::atomic<int64_t> next_id{1};
  std::atomic<bool> has_answered{false};  // to more than the greeting
  std::string server;
  std::string version;
  bool has_tools = false;

  // The result of a request; an error where it failed or the server refused it.
  Result<Json> ask(const std::string& method, Json params, const ToolContext& context) {
    const int64_t id = next_id++;
    auto answer = transport->request(id, rpc_request(id, method, std::move(params)), context);
    if (!answer) {
      if (answer.error().code == Code::cancelled && method != "initialize") {
        ToolContext brief;
        brief.deadline = steady_clock::now() + kCancelTime;
        const Json reason = {{"requestId", id}, {"reason", answer.error().message}};
        (void)transport->notify(rpc_notification("notifications/cancelled", reason), brief);
      }
      return answer.error();
    }
    if (answer->error) {
      return Error{Code::invalid_argument,
                   "the server refused: " + answer->error->message + " (" + std::to_string(answer->error->code) + ")"};
    }
    return Result<Json>{std::move(answer->result)};
  }

  static std::string hear(Heard& heard, const RpcMessage& message) {
    if (message.method == "notifications/tools/list_changed") heard.has_new_list = true;
    if (!message.is_request()) return "";
    if (message.method == "ping") return rpc_result(message.id, Json::object());
    return rpc_failure(message.id, kRpcUnknownMethod, "this client does not offer " + message.method);
  }

  // All pages of the list.
  Result<std::vector<Json>> list(const ToolContext& context) {
    std::vector<Json> all;
    std::string cursor;
    for (size_t page = 0; page < kMaxListPages; ++page) {
      TRY_ASSIGN(Json result, ask("tools/list", cursor.empty() ? Json() : Json{{"cursor", cursor}}, context));
      if (!result.is_object() || !result.contains("tools") || !result["tools"].is_array()) {
        return Error{Code::corrupt, "expected a list of tools"};
      }
      for (Json& tool : result["tools"]) all.push_back(std::move(tool));
      const std::string next = text_argument(result, "nextCursor");
      if (next.empty() || all.size() > kMaxToolsPerServer) return Result<std::vector<Json>>{std::move(all)};
      if (next == cursor || next.size() > kMaxCursorBytes)
        return Error{Code::corrupt, "its list of tools does not end"};
      cursor = next;
    }
    return Error{Code::corrupt, "its list of tools has more than " + std::to_string(kMaxListPages) + " pages"};
  }
};

McpClient::McpClient(McpServerConfig config, McpClientOptions options)
    : config_(std::move(config)), options_(std::move(options)) {}

McpClient::~McpClient() = default;

milliseconds McpClient::pause() const {
  milliseconds pause = options_.first_pause;
  for (uint64_t i = 1; i < n_failures_ && pause < options_.last_pause; ++i) pause *= 2;
  return n_failures_ == 0 ? milliseconds(0) : std::min(pause, options_.last_pause);
}

void McpClient::note_end(const SessionPtr& session, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (session && session_ != session) return;  // another call has noticed
  n_failures_ = session && session->has_answered ? 0 : n_failures_ + 1;
  next_start_ = steady_clock::now() + pause();
  problem_ = why;
  session_.reset();
}

Result<McpClient::SessionPtr> McpClient::greet(const ToolContext& context) {
  auto session = std::make_shared<Session>();
  const auto listener = [heard = session->heard](const RpcMessage& message) { return Session::hear(*heard, message); };
  if (config_.url.empty()) {
    TRY_ASSIGN(session->transport, start_program_transport(config_, listener));
  } else {
    session->transport = make_http_transport(config_, listener);
  }
  const Json ours = {{"name", "chimere"}, {"version", options_.version}};
  TRY_ASSIGN(
      const Json greeting,
      session->ask("initialize",
                   Json{{"protocolVersion", kMcpVersions[0]}, {"capabilities", Json::object()}, {"clientInfo", ours}},
                   context));
  if (!greeting.is_object()) return Error{Code::corrupt, "expected a greeting"};
  session->version = text_at(greeting, "protocolVersion", 64);
  if (std::find(kMcpVersions.begin(), kMcpVersions.end(), session->version) == kMcpVersions.end()) {
    return Error{Code::unsupported, "it speaks version '" + session->version +
                                        "' of the protocol; the latest known here is " + std::string(kMcpVersions[0])};
  }
  session->transport->set_version(session->version);
  if (const auto server = greeting.find("serverInfo"); server != greeting.end() && server->is_object()) {
    session->server = text_at(*server, "name", 200) + " " + text_at(*server, "version", 64);
  }
  const auto offers = greeting.find("capabilities");
  session->has_tools = offers != greeting.end() && offers->is_object() && offers->contains("tools");
  TRY(session->transport->notify(rpc_notification("notifications/initialized", Json()), context));
  return Result<SessionPtr>{std::move(session)};
}

// The session there is, or a new one.
Result<McpClient::SessionPtr> McpClient::connect(const ToolContext& caller) {
  const ToolContext context = within(caller, options_.start_time);
  {
    std::unique_lock lock(mutex_);
    while (is_starting_) {
      started_.wait_for(lock, milliseconds(20));
      lock.unlock();
      TRY(still_wanted(context));
      lock.lock();
    }
    is_starting_ = true;
  }
  auto session = connect_alone(context);
  const std::lock_guard lock(mutex_);
  is_starting_ = false;
  started_.notify_one();
  return session;
}

// REQUIRES: no other thread is here
Result<McpClient::SessionPtr> McpClient::connect_alone(const ToolContext& context) {
  SessionPtr session;
  {
    const std::lock_guard lock(mutex_);
    session = session_;
  }
  if (session) {
    const std::string problem = session->transport->problem();
    if (problem.empty()) return Result<SessionPtr>{std::move(session)};
    note_end(session, problem);
    session.reset();
  }
  {
    const std::lock_guard lock(mutex_);
    const auto left = next_start_ - steady_clock::now();
    if (left > steady_clock::duration::zero()) {
      return Error{Code::io, problem_ + "; it is tried again in " +
                                 std::to_string(std::chrono::ceil<std::chrono::seconds>(left).count()) + " s"};
    }
    ++n_starts_;
  }
  auto greeted = greet(context);
  if (!greeted) {
    note_end(nullptr, greeted.error().message);
    return greeted.error();
  }
  const std::lock_guard lock(mutex_);
  session_ = *greeted;
  problem_.clear();
  return greeted;
}

bool McpClient::is_stale() const {
  const std::lock_guard lock(mutex_);
  if (session_) return session_->heard->has_new_list || !session_->transport->problem().empty();
  return steady_clock::now() >= next_start_;
}

Result<std::vector<std::shared_ptr<Tool>>> McpClient::tools(const ToolContext& caller) {
  const ToolContext context = within(caller, options_.start_time);
  TRY_ASSIGN(const SessionPtr session, connect(context));
  if (session->heard->has_new_list.exchange(false)) {
    std::vector<Json> listed;
    if (session->has_tools) {
      auto list = session->list(context);
      if (!list) {
        session->heard->has_new_list = true;
        if (!session->transport->problem().empty()) note_end(session, session->transport->problem());
        return list.error();
      }
      listed = std::move(*list);
    }
    std::string left_out;
    std::vector<McpOffer> offers = offers_of(config_.name, listed, left_out);
    session->has_answered = true;
    const std::lock_guard lock(mutex_);
    n_failures_ = 0;
    offers_ = std::move(offers);
    problem_ = left_out;
  }
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Tool>> tools;
  for (const McpOffer& offer : offers_) {
    tools.push_back(std::make_shared<McpTool>(shared_from_this(), offer.remote_name, offer.spec));
  }
  return Result<std::vector<std::shared_ptr<Tool>>>{std::move(tools)};
}

ToolResult McpClient::call(const std::string& tool, const std::string& arguments, const ToolContext& caller) {
  const ToolContext context = within(caller, options_.call_time);
  const auto failed = [this](const std::string& why) { return ToolResult{config_.name + ": " + why, true, true}; };
  auto given = read_arguments(arguments);
  if (!given) return ToolResult{given.error().message, true};
  const auto session = connect(context);
  if (!session) return failed(session.error().message);
  const auto result = (*session)->ask("tools/call", Json{{"name", tool}, {"arguments", std::move(*given)}}, context);
  if (!result) {
    const std::string problem = (*session)->transport->problem();
    if (!problem.empty()) note_end(*session, problem);
    return failed(result.error().message);
  }
  (*session)->has_answered = true;
  return mcp_result(*result);
}

McpServerStatus McpClient::status() const {
  const std::lock_guard lock(mutex_);
  McpServerStatus status{config_.name};
  status.is_connected = session_ && session_->transport->problem().empty();
  if (session_) {
    status.server = session_->server;
    status.version = session_->version;
  }
  status.n_tools = offers_.size();
  status.problem = session_ && !status.is_connected ? session_->transport->problem() : problem_;
  status.n_starts = n_starts_;
  return status;
}

}  // namespace chimere::tools
