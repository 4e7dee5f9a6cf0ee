// toolbox.h  The tools that a model is offered, by name, each with its policy.
//
// Tools may come and go while others run: a server of tools can change its list at any time. A tool that was found stays
// alive as long as somebody holds it.
#pragma once

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tools/tool.h"

namespace chimere::tools {

inline constexpr size_t kMaxTools = 512;
inline constexpr size_t kMaxSchemaBytes = size_t{64} << 10;
inline constexpr size_t kMaxResultBytes = size_t{256} << 10;  // longer ones are cut, and say so

// [a-zA-Z0-9_-]{1,64}
bool is_tool_name(std::string_view name);

// "allow", "ask" or "deny"
Result<Policy> parse_policy(std::string_view word);
const char* policy_name(Policy policy);

class Toolbox {
 public:
  // An error where the name is none or is taken, where its schema is no object, or where there are too many.
  Status add(std::shared_ptr<Tool> tool, Policy policy = Policy::allow);
  // False where there is none of that name.
  bool remove(std::string_view name);
  std::shared_ptr<Tool> find(std::string_view name) const;  // null where there is none

  // What a model is told of: all that are not denied, by name; or those named, where an unknown name is an error.
  std::vector<ToolSpec> list() const;
  Result<std::vector<ToolSpec>> list(const std::vector<std::string>& names) const;
  // The others, for people to see.
  std::vector<ToolSpec> denied() const;

  Status set_policy(std::string_view name, Policy policy);
  Policy policy(std::string_view name) const;  // deny for those that are not here

  // Checks the policy, the arguments against the schema, the deadline, and then calls. Whatever goes wrong is a result
  // that says so. `is_approved`: a person agreed to this call, which `ask` needs and which does not lift `deny`.
  ToolResult run(const std::string& name, const std::string& arguments, const ToolContext& context,
                 bool is_approved = false) const;

 private:
  struct Entry;
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::shared_ptr<const Entry>, std::less<>> entries_;

  std::shared_ptr<const Entry> entry(std::string_view name) const;
  std::vector<ToolSpec> specs(bool is_denied) const;
  Error unknown(std::string_view name) const;
};

}  // namespace chimere::tools
