#include "tools/mcp_config.h"

#include <gtest/gtest.h>

namespace chimere::tools {
namespace {

TEST(McpConfig, ReadsProgramsAndAddresses) {
  const auto servers = parse_mcp_servers(R"(
other: {is: not looked at}
mcp_servers:
  notes:
    command: [npx, -y, server, "/home/a b"]
    env: {COLOUR: red}
    policy: allow
  wiki:
    url: https://wiki.example.org/mcp
    headers: {Authorization: Bearer abc}
)",
                                         "odo.yaml");
  ASSERT_TRUE(servers) << servers.error().message;
  ASSERT_EQ(servers->size(), 2u);
  EXPECT_EQ((*servers)[0].command, (std::vector<std::string>{"npx", "-y", "server", "/home/a b"}));
  EXPECT_EQ((*servers)[0].env[0].second, "red");
  EXPECT_EQ((*servers)[0].policy, Policy::allow);
  EXPECT_EQ((*servers)[1].url, "https://wiki.example.org/mcp");
  EXPECT_EQ((*servers)[1].headers[0].first, "Authorization");
  EXPECT_EQ((*servers)[1].policy, Policy::ask);
  EXPECT_TRUE(parse_mcp_servers("", "f")->empty());
  EXPECT_TRUE(parse_mcp_servers("mcp_servers:", "f")->empty());
}

TEST(McpConfig, ErrorsSayWhereAndWhatWasMeant) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"mcp_server: {}", "f:1:13: unknown section 'mcp_server'; did you mean `mcp_servers`?"},
      {"mcp_servers: [a]", "f:1:14: expected a map, found a list"},
      {"mcp_servers:\n  a:\n    comand: [x]", "f:3:5: 'comand' is not known here; did you mean `command`?"},
      {"mcp_servers:\n  a:\n    colour: x", "f:3:5: 'colour' is not known here"},
      {"mcp_servers:\n  a:\n    command: npx -y x",
       "f:3:14: command: expected a list of a program and its arguments, found 'npx -y x'"},
      {"mcp_servers:\n  a: {command: [[x]]}", "f:2:17: command: expected texts of 1 to 8192 bytes, found a list"},
      {"mcp_servers:\n  a: {policy: never, url: u}", "f:2:15: expected a policy of allow, ask or deny, found 'never'"},
      {"mcp_servers:\n  a: {}", "f:2:6: a: expected either a command or a url"},
      {"mcp_servers:\n  a: {url: u, command: [x]}", "f:2:6: a: expected either a command or a url"},
      {"mcp_servers:\n  a: {url: u, env: {A: b}}", "f:2:6: a: env belongs to a command"},
      {"mcp_servers:\n  a: {command: [x], headers: {A: b}}", "f:2:6: a: headers belong to a url"},
      {"mcp_servers:\n  a: {url: u, headers: {\"A:\": b}}", "f:2:31: headers: expected a name, found 'A:'"},
      {"mcp_servers:\n  a: {url: u, headers: {A: \"b\\r\\nC: d\"}}", "f:2:28: A: expected one line"},
      {"mcp_servers:\n  two words: {url: u}",
       "f:2:14: expected a server's name of 1 to 32 letters, digits, _ and -, found 'two words'"},
      {"mcp_servers:\n  a: {url: u}\n  a: {url: v}", "f:3:3: 'a' is there twice"},
  };
  for (const auto& [text, expected] : cases) {
    const auto servers = parse_mcp_servers(text, "f");
    ASSERT_FALSE(servers) << text;
    EXPECT_EQ(servers.error().message, expected);
  }
  EXPECT_FALSE(parse_mcp_servers("mcp_servers: {a: [", "f"));
  EXPECT_FALSE(parse_mcp_servers(std::string((1 << 20) + 1, ' '), "f"));
  std::string many = "mcp_servers:\n";
  for (int i = 0; i < 40; ++i) many += "  s" + std::to_string(i) + ": {url: u}\n";
  EXPECT_FALSE(parse_mcp_servers(many, "f"));
}

}  // namespace
}  // namespace chimere::tools
