#include "tools/mcp_config.h"

#include "text/nearest_word.h"
#include "tools/toolbox.h"

namespace chimere::tools {
namespace {

constexpr const char* kSection = "mcp_servers";
constexpr size_t kMaxListed = 256;
constexpr size_t kMaxValueBytes = 8192;

using Words = std::vector<std::pair<std::string, std::string>>;

// A map of names to single lines.
void read_words(YamlFields& fields, const std::string& name, Words& out) {
  const YamlNode* map = fields.find(name);
  if (!map) return;
  if (map->kind != YamlNode::Kind::map || map->pairs.size() > kMaxListed) {
    return fields.fail(
        *map, name + ": expected a map of at most " + std::to_string(kMaxListed) + " names, found " + described(*map));
  }
  for (const auto& [key, value] : map->pairs) {
    const bool is_name = !key.empty() && key.find_first_of(std::string("=:\r\n\0 ", 6)) == std::string::npos;
    if (!is_name) return fields.fail(value, name + ": expected a name, found '" + key + "'");
    const bool is_line = value.kind == YamlNode::Kind::word && value.word.size() <= kMaxValueBytes &&
                         value.word.find_first_of(std::string("\r\n\0", 3)) == std::string::npos;
    if (!is_line) return fields.fail(value, key + ": expected one line");
    out.emplace_back(key, value.word);
  }
}

void read_command(YamlFields& fields, std::vector<std::string>& out) {
  const YamlNode* command = fields.find("command");
  if (!command) return;
  if (command->kind != YamlNode::Kind::list || command->items.empty()) {
    return fields.fail(*command,
                       "command: expected a list of a program and its arguments, found " + described(*command));
  }
  fields.words("command", out, kMaxListed, kMaxValueBytes);
  for (const YamlNode& argument : command->items) {
    if (argument.word.find('\0') != std::string::npos) fields.fail(argument, "command: it contains a zero byte");
  }
}

Result<McpServerConfig> read_server(const std::string& name, const YamlNode& map, const std::string& file) {
  McpServerConfig config;
  config.name = name;
  YamlFields fields(map, file);
  if (!is_tool_name(name) || name.size() > 32) {
    fields.fail(map, "expected a server's name of 1 to 32 letters, digits, _ and -, found '" + name + "'");
  }
  read_command(fields, config.command);
  read_words(fields, "env", config.env);
  read_words(fields, "headers", config.headers);
  fields.text("url", config.url, kMaxValueBytes);
  std::string policy;
  fields.text("policy", policy);
  if (!policy.empty()) {
    if (const auto parsed = parse_policy(policy)) {
      config.policy = *parsed;
    } else {
      fields.fail(*map.find("policy"), parsed.error().message);
    }
  }
  TRY(fields.end());
  if (config.command.empty() == config.url.empty()) fields.fail(map, name + ": expected either a command or a url");
  if (!config.url.empty() && !config.env.empty()) fields.fail(map, name + ": env belongs to a command");
  if (config.url.empty() && !config.headers.empty()) fields.fail(map, name + ": headers belong to a url");
  TRY(fields.so_far());
  return Result<McpServerConfig>{std::move(config)};
}

}  // namespace

Result<std::vector<McpServerConfig>> read_mcp_servers(const YamlNode& root, const std::string& file) {
  std::vector<McpServerConfig> servers;
  YamlFields fields(root, file);
  const YamlNode* section = fields.find(kSection);
  TRY(fields.so_far());
  if (!section) {
    for (const auto& [name, value] : root.pairs) {
      if (name == kSection || nearest_word(name, {kSection}).empty()) continue;
      fields.fail(value, "unknown section '" + name + "'; did you mean `mcp_servers`?");
    }
    TRY(fields.so_far());
    return Result<std::vector<McpServerConfig>>{std::move(servers)};
  }
  YamlFields named(*section, file);
  if (section->pairs.size() > kMaxMcpServers) {
    named.fail(*section, "expected at most " + std::to_string(kMaxMcpServers) + " servers, found " +
                             std::to_string(section->pairs.size()));
  }
  TRY(named.so_far());
  for (const auto& [name, map] : section->pairs) {
    TRY_ASSIGN(McpServerConfig config, read_server(name, map, file));
    servers.push_back(std::move(config));
  }
  return Result<std::vector<McpServerConfig>>{std::move(servers)};
}

Result<std::vector<McpServerConfig>> parse_mcp_servers(std::string_view text, const std::string& file) {
  TRY_ASSIGN(const YamlNode root, parse_yaml(text, file));
  return read_mcp_servers(root, file);
}

}  // namespace chimere::tools
