// mcp_config.h  Which servers of tools (Model Context Protocol) to use: a section of a YAML file.
//
//   mcp_servers:
//     notes:
//       command: [npx, -y, "@modelcontextprotocol/server-filesystem", /home/ann/notes]
//       env: {NODE_ENV: production}
//       policy: ask
//     wiki:
//       url: https://wiki.example.org/mcp
//       headers: {Authorization: Bearer abc}
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/yaml.h"
#include "tools/tool.h"

namespace chimere::tools {

inline constexpr size_t kMaxMcpServers = 32;

struct McpServerConfig {
  std::string name;                                               // [a-zA-Z0-9_-]{1,32}: first part of its tools' names
  std::vector<std::string> command = {};                          // a program and its arguments, never read by a shell
  std::vector<std::pair<std::string, std::string>> env = {};      // beside PATH, HOME, LANG, TMPDIR and USER
  std::string url = {};                                           // of a server over HTTP; then there is no command
  std::vector<std::pair<std::string, std::string>> headers = {};  // sent with every request to that
  Policy policy = Policy::ask;                                    // of all its tools
};

// The section `mcp_servers` of a document, whose other sections are not looked at; no section, no servers. `file` is for
// errors, which say line and column.
Result<std::vector<McpServerConfig>> read_mcp_servers(const YamlNode& root, const std::string& file);
Result<std::vector<McpServerConfig>> parse_mcp_servers(std::string_view text, const std::string& file);

}  // namespace chimere::tools
