// mcp_content.h  What the Model Context Protocol says that both a client and a server need: versions, names, results.
// For .cpp files: JSON is heavy.
#pragma once

#include <array>
#include <set>
#include <string>

#include "text/json.h"
#include "tools/tool.h"

namespace chimere::tools {

// Versions of the protocol that are spoken here, the newest first.
inline constexpr std::array<const char*, 4> kMcpVersions = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

// `server__tool`, with what no name may contain made "_", cut to 64, and told apart from those `taken` by a number.
std::string mcp_tool_name(const std::string& server, const std::string& tool, const std::set<std::string>& taken);

// The result of tools/call as text: texts as they are, resources with their address, images and sounds by their kind.
ToolResult mcp_result(const Json& result);

}  // namespace chimere::tools
