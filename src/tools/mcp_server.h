// mcp_server.h  Our tools for other programs: the Model Context Protocol, one message at a time, without its transport.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/tool.h"
#include "tools/toolbox.h"

namespace chimere::tools {

class McpServer {
 public:
  // Offers the tools of these names; with none, all. Only those whose policy is to allow: there is nobody to ask.
  McpServer(const Toolbox& toolbox, std::string version, std::vector<std::string> names = {});

  // The reply to one JSON-RPC message; empty where none is due. Any thread, several at once. It keeps nothing between
  // messages, so that any transport and any number of clients will do.
  std::string answer(std::string_view message, const ToolContext& context) const;

 private:
  std::vector<ToolSpec> offered() const;
  bool is_offered(const std::string& name) const;

  const Toolbox& toolbox_;
  const std::string version_;
  const std::vector<std::string> names_;
};

}  // namespace chimere::tools
