// mcp_probe.cpp  Lists the tools of a server of the Model Context Protocol, calls some, and prints all as JSON.
//
//   mcp_probe [--call TOOL ARGUMENTS]... --url URL
//   mcp_probe [--call TOOL ARGUMENTS]... -- PROGRAM [ARGUMENT]...
#include <iostream>
#include <string>
#include <vector>

#include "text/json.h"
#include "tools/mcp_client.h"
#include "tools/toolbox.h"

int main(int argc, char** argv) {
  using namespace chimere;
  tools::McpServerConfig config{"probe"};
  config.policy = tools::Policy::allow;
  std::vector<std::pair<std::string, std::string>> calls;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--call" && i + 2 < arguments.size()) {
      calls.emplace_back(arguments[i + 1], arguments[i + 2]);
      i += 2;
    } else if (arguments[i] == "--url" && i + 1 < arguments.size()) {
      config.url = arguments[++i];
    } else if (arguments[i] == "--") {
      config.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
      break;
    } else {
      std::cerr << "mcp_probe: unexpected argument " << arguments[i] << "\n";
      return 2;
    }
  }

  tools::Toolbox box;
  tools::McpServers servers({config}, box);
  servers.refresh({});
  Json results = Json::array();
  for (const auto& [name, call] : calls) {
    const tools::ToolResult result = box.run("probe__" + name, call, {});
    results.push_back(
        Json{{"text", result.text}, {"is_error", result.is_error}, {"is_untrusted", result.is_untrusted}});
    servers.refresh({});
  }
  const tools::McpServerStatus status = servers.status()[0];
  Json names = Json::array();
  for (const tools::ToolSpec& spec : box.list()) names.push_back(spec.name);
  std::cout << to_text(Json{{"server", status.server},
                            {"version", status.version},
                            {"is_connected", status.is_connected},
                            {"problem", status.problem},
                            {"tools", names},
                            {"results", results}})
            << "\n";
  return status.is_connected ? 0 : 1;
}
