#include "tools/skill_folder.h"

#include <utility>

namespace chimere::tools {
namespace {

constexpr size_t kMaxSkills = 128;

}  // namespace

SkillFolder::SkillFolder(const std::string& folder, Toolbox& toolbox, SkillOptions options)
    : toolbox_(toolbox), options_(std::move(options)), folder_({folder}, kMaxSkills, read_skill) {}

void SkillFolder::put(const std::string& name, const Skill& skill) {
  Policy policy = skill.policy;
  if (const auto before = offered_.find(name); before != offered_.end()) {
    const Policy now = toolbox_.policy(name);
    if (now != before->second) policy = now;
    toolbox_.remove(name);
    offered_.erase(before);
  }
  if (const Status added = toolbox_.add(make_skill(skill, options_), policy)) {
    offered_[name] = skill.policy;
  } else {
    problems_[skill.folder + "/" + name + ".yaml"] = added.error().message;
  }
}

void SkillFolder::refresh(std::chrono::milliseconds pause) {
  const std::lock_guard lock(mutex_);
  if (!folder_.update(pause)) return;
  problems_ = folder_.problems();
  for (auto it = offered_.begin(); it != offered_.end();) {
    const bool is_gone = folder_.items().count(it->first) == 0;
    if (is_gone) toolbox_.remove(it->first);
    it = is_gone ? offered_.erase(it) : std::next(it);
  }
  for (const auto& [name, skill] : folder_.items()) put(name, skill);
}

std::vector<std::string> SkillFolder::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, policy] : offered_) names.push_back(name);
  return names;
}

std::map<std::string, std::string> SkillFolder::problems() const {
  const std::lock_guard lock(mutex_);
  return problems_;
}

}  // namespace chimere::tools
