#include "tools/mcp_server.h"

#include <algorithm>

#include "tools/arguments.h"
#include "tools/mcp_content.h"
#include "tools/rpc.h"

namespace chimere::tools {

McpServer::McpServer(const Toolbox& toolbox, std::string version, std::vector<std::string> names)
    : toolbox_(toolbox), version_(std::move(version)), names_(std::move(names)) {}

bool McpServer::is_offered(const std::string& name) const {
  return (names_.empty() || std::find(names_.begin(), names_.end(), name) != names_.end()) &&
         toolbox_.policy(name) == Policy::allow;
}

std::vector<ToolSpec> McpServer::offered() const {
  std::vector<ToolSpec> specs = toolbox_.list();
  specs.erase(
      std::remove_if(specs.begin(), specs.end(), [this](const ToolSpec& spec) { return !is_offered(spec.name); }),
      specs.end());
  return specs;
}

std::string McpServer::answer(std::string_view message, const ToolContext& context) const {
  const auto request = parse_rpc(message);
  if (!request) {
    const bool is_json = request.error().code != Code::corrupt;
    return rpc_failure(Json(), is_json ? kRpcInvalidRequest : kRpcParseError, request.error().message);
  }
  if (!request->is_request()) return "";
  const Json params = request->params.is_null() ? Json::object() : request->params;
  const std::string& method = request->method;
  if (method == "ping") return rpc_result(request->id, Json::object());
  if (method == "initialize") {
    const std::string wanted = text_argument(params, "protocolVersion");
    const bool is_known = std::find(kMcpVersions.begin(), kMcpVersions.end(), wanted) != kMcpVersions.end();
    return rpc_result(request->id, Json{{"protocolVersion", is_known ? wanted : kMcpVersions[0]},
                                        {"capabilities", Json{{"tools", Json::object()}}},
                                        {"serverInfo", Json{{"name", "chimere"}, {"version", version_}}}});
  }
  if (method == "tools/list") {
    if (params.contains("cursor")) {
      return rpc_failure(request->id, kRpcInvalidParams, "the list of tools has one page: expected no cursor");
    }
    Json tools = Json::array();
    for (const ToolSpec& spec : offered()) {
      const auto schema = parse_json(spec.parameters);
      tools.push_back(Json{{"name", spec.name},
                           {"description", spec.description},
                           {"inputSchema", schema ? *schema : Json{{"type", "object"}}}});
    }
    return rpc_result(request->id, Json{{"tools", std::move(tools)}});
  }
  if (method == "tools/call") {
    const std::string name = text_argument(params, "name");
    if (!is_offered(name)) {
      return rpc_failure(request->id, kRpcInvalidParams, "there is no tool '" + name.substr(0, 64) + "'");
    }
    const auto arguments = params.find("arguments");
    const ToolResult result = toolbox_.run(name, arguments == params.end() ? "{}" : to_text(*arguments), context);
    const Json block = {{"type", "text"}, {"text", result.text}};
    return rpc_result(request->id, Json{{"content", Json::array({block})}, {"isError", result.is_error}});
  }
  return rpc_failure(request->id, kRpcUnknownMethod, "there is no method '" + method + "'");
}

}  // namespace chimere::tools
