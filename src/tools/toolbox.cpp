#include "tools/toolbox.h"

#include <algorithm>
#include <exception>
#include <mutex>

#include "text/nearest_word.h"
#include "text/utf8.h"
#include "tools/arguments.h"

namespace chimere::tools {
namespace {

ToolResult refusal(const std::string& text) { return ToolResult{text, true}; }

// Valid UTF-8 of a length that a conversation can hold, whatever a tool gave.
void make_presentable(ToolResult& result) {
  if (result.text.size() > kMaxResultBytes) {
    const size_t n_before = result.text.size();
    result.text.resize(kMaxResultBytes);
    result.text.resize(result.text.size() - incomplete_utf8(result.text));
    result.text += "\n[cut: " + std::to_string(n_before - result.text.size()) + " more bytes]";
  }
  if (is_valid_utf8(result.text)) return;
  std::string valid;
  Utf8Stream stream;
  stream.push(result.text, valid);
  stream.finish(valid);
  result.text = std::move(valid);
}

}  // namespace

struct Toolbox::Entry {
  std::shared_ptr<Tool> tool;
  Json schema;
  Policy policy;
};

bool is_tool_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), is_allowed);
}

Result<Policy> parse_policy(std::string_view word) {
  if (word == "allow") return Policy::allow;
  if (word == "ask") return Policy::ask;
  if (word == "deny") return Policy::deny;
  return Error{Code::invalid_argument, "expected a policy of allow, ask or deny, found '" + std::string(word) + "'"};
}

const char* policy_name(Policy policy) {
  return policy == Policy::allow ? "allow" : policy == Policy::ask ? "ask" : "deny";
}

Status Toolbox::add(std::shared_ptr<Tool> tool, Policy policy) {
  const ToolSpec& spec = tool->spec();
  if (!is_tool_name(spec.name)) {
    return Error{Code::invalid_argument,
                 "expected a tool's name of 1 to 64 letters, digits, _ and -, found '" + spec.name.substr(0, 80) + "'"};
  }
  if (spec.parameters.size() > kMaxSchemaBytes) {
    return Error{Code::invalid_argument, spec.name + ": expected a schema of at most " +
                                             std::to_string(kMaxSchemaBytes) + " bytes, found " +
                                             std::to_string(spec.parameters.size())};
  }
  auto schema = parse_json(spec.parameters);
  if (!schema) return Error{Code::invalid_argument, spec.name + ": its schema: " + schema.error().message};
  if (!schema->is_object()) return Error{Code::invalid_argument, spec.name + ": its schema is no object"};
  auto entry = std::make_shared<const Entry>(Entry{std::move(tool), std::move(*schema), policy});
  const std::unique_lock lock(mutex_);
  if (entries_.size() >= kMaxTools) {
    return Error{Code::exhausted, "there are " + std::to_string(kMaxTools) + " tools already"};
  }
  const std::string name = entry->tool->spec().name;
  if (!entries_.emplace(name, std::move(entry)).second) {
    return Error{Code::invalid_argument, "there is a tool of the name '" + name + "' already"};
  }
  return Ok{};
}

bool Toolbox::remove(std::string_view name) {
  std::shared_ptr<const Entry> last;  // ends behind the lock: a tool may take long to end
  const std::unique_lock lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return false;
  last = std::move(found->second);
  entries_.erase(found);
  return true;
}

std::shared_ptr<const Toolbox::Entry> Toolbox::entry(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second;
}

std::shared_ptr<Tool> Toolbox::find(std::string_view name) const {
  const auto found = entry(name);
  return found ? found->tool : nullptr;
}

Error Toolbox::unknown(std::string_view name) const {
  std::vector<std::string> known;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [other, entry] : entries_) known.push_back(other);
  }
  const std::string nearest = nearest_word(name.substr(0, 64), known);
  return Error{Code::not_found, "there is no tool '" + std::string(name.substr(0, 64)) + "'" +
                                    (nearest.empty() ? "" : "; did you mean '" + nearest + "'?")};
}

std::vector<ToolSpec> Toolbox::specs(bool is_denied) const {
  const std::shared_lock lock(mutex_);
  std::vector<ToolSpec> specs;
  for (const auto& [name, entry] : entries_) {
    if ((entry->policy == Policy::deny) == is_denied) specs.push_back(entry->tool->spec());
  }
  return specs;
}

std::vector<ToolSpec> Toolbox::list() const { return specs(false); }

std::vector<ToolSpec> Toolbox::denied() const { return specs(true); }

Result<std::vector<ToolSpec>> Toolbox::list(const std::vector<std::string>& names) const {
  std::vector<ToolSpec> specs;
  for (const std::string& name : names) {
    const auto found = entry(name);
    if (!found) return unknown(name);
    if (found->policy != Policy::deny) specs.push_back(found->tool->spec());
  }
  return Result<std::vector<ToolSpec>>{std::move(specs)};
}

Status Toolbox::set_policy(std::string_view name, Policy policy) {
  {
    const std::unique_lock lock(mutex_);
    if (const auto found = entries_.find(name); found != entries_.end()) {
      const Entry& old = *found->second;
      found->second = std::make_shared<const Entry>(Entry{old.tool, old.schema, policy});
      return Ok{};
    }
  }
  return unknown(name);
}

Policy Toolbox::policy(std::string_view name) const {
  const auto found = entry(name);
  return found ? found->policy : Policy::deny;
}

ToolResult Toolbox::run(const std::string& name, const std::string& arguments, const ToolContext& context,
                        bool is_approved) const {
  try {
    const auto found = entry(name);
    if (!found) return refusal(unknown(name).message);
    if (found->policy == Policy::deny) return refusal(name + ": the policy of this tool denies calls");
    if (found->policy == Policy::ask && !is_approved) {
      return refusal(name + ": the policy of this tool wants a person's approval, which this call does not have");
    }
    const auto parsed = read_arguments(arguments);
    if (!parsed) return refusal(name + ": " + parsed.error().message);
    if (const Status right = check_arguments(*parsed, found->schema); !right) {
      return refusal(name + ": " + right.error().message);
    }
    if (context.is_cancelled()) return refusal(name + ": the call was cancelled before it began");
    if (std::chrono::steady_clock::now() >= context.deadline) {
      return refusal(name + ": there was no time left for the call");
    }
    ToolResult result = found->tool->run(arguments, context);
    make_presentable(result);
    return result;
  } catch (const std::exception& e) {
    return refusal(name + ": " + e.what());
  }
}

}  // namespace chimere::tools
