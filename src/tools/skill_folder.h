// skill_folder.h  A folder of skills, kept in a toolbox: a file that comes is a tool, one that goes is none, one that is
// broken keeps its last good version.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "text/yaml_folder.h"
#include "tools/skill.h"
#include "tools/toolbox.h"

namespace chimere::tools {

class SkillFolder {
 public:
  // The toolbox outlives it.
  SkillFolder(const std::string& folder, Toolbox& toolbox, SkillOptions options = {});

  // Looks for changes; not more often than every `pause`. Where a person gave a tool another policy than its file, that one
  // stays.
  void refresh(std::chrono::milliseconds pause = std::chrono::seconds(1));
  // Of those that are tools.
  std::vector<std::string> names() const;
  // By file: what is wrong with it.
  std::map<std::string, std::string> problems() const;

 private:
  void put(const std::string& name, const Skill& skill);

  Toolbox& toolbox_;
  const SkillOptions options_;
  mutable std::mutex mutex_;  // guards all below
  YamlFolder<Skill> folder_;
  std::map<std::string, Policy> offered_;  // tools of ours in the toolbox, and the policy of their file
  std::map<std::string, std::string> problems_;
};

}  // namespace chimere::tools
