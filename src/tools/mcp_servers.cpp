// mcp_servers.cpp  The tools of all configured servers, kept in a toolbox.
#include <algorithm>
#include <optional>
#include <thread>

#include "tools/mcp_client.h"

namespace chimere::tools {

McpServers::McpServers(const std::vector<McpServerConfig>& configs, Toolbox& toolbox, const McpClientOptions& options)
    : toolbox_(toolbox) {
  for (const McpServerConfig& config : configs) places_.push_back({std::make_shared<McpClient>(config, options)});
}

std::vector<McpServerStatus> McpServers::refresh(const ToolContext& context) {
  const std::lock_guard one(refreshing_);
  // All at once: one that hangs must not keep the others away.
  std::vector<std::optional<std::vector<std::shared_ptr<Tool>>>> found(places_.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i].client->is_stale()) continue;
    threads.emplace_back([&, i] {
      if (auto tools = places_[i].client->tools(context)) found[i] = std::move(*tools);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<McpServerStatus> read;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!found[i]) continue;
    put_into_toolbox(places_[i], *found[i]);
    read.push_back(places_[i].client->status());
  }
  return read;
}

void McpServers::put_into_toolbox(Place& place, const std::vector<std::shared_ptr<Tool>>& tools) {
  std::vector<std::string> names;
  std::string problem;
  for (const std::shared_ptr<Tool>& tool : tools) {
    const ToolSpec& spec = tool->spec();
    Policy policy = place.client->config().policy;
    if (std::find(place.names.begin(), place.names.end(), spec.name) != place.names.end()) {
      const auto old = toolbox_.find(spec.name);
      const bool is_same =
          old && old->spec().description == spec.description && old->spec().parameters == spec.parameters;
      if (is_same) {
        names.push_back(spec.name);
        continue;
      }
      // A tool that says something else than before has to be allowed again; what was denied stays denied.
      if (old) policy = std::max(policy, toolbox_.policy(spec.name));
      toolbox_.remove(spec.name);
    } else if (const auto known = place.strict.find(spec.name); known != place.strict.end()) {
      policy = std::max(policy, known->second);
    }
    if (const Status added = toolbox_.add(tool, policy)) {
      names.push_back(spec.name);
    } else {
      problem = "left out: " + added.error().message;
    }
  }
  for (const std::string& name : place.names) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    // What a person has said of it holds for the next one of that name, too.
    const Policy said = toolbox_.policy(name);
    if (said > place.client->config().policy && place.strict.size() < kMaxTools) place.strict[name] = said;
    toolbox_.remove(name);
  }
  const std::lock_guard lock(mutex_);
  place.names = std::move(names);
  place.problem = std::move(problem);
}

std::vector<McpServerStatus> McpServers::status() const {
  std::vector<McpServerStatus> all;
  for (const Place& place : places_) {
    all.push_back(place.client->status());
    const std::lock_guard lock(mutex_);
    if (all.back().problem.empty()) all.back().problem = place.problem;
    all.back().policy = place.client->config().policy;
    all.back().tools = place.names;
  }
  return all;
}

}  // namespace chimere::tools
