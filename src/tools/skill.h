// skill.h  A program of yours as a tool: a YAML file with its list of arguments, of which some are the model's to say.
//
//   description: Counts the lines of the list that have a word.
//   argv: [/usr/bin/grep, --count, --, "{word}", /usr/share/dict/words]
//
// There is no shell, and a placeholder is an argument of its own: what comes in its place is one argument of the program,
// whatever is in it. It runs in the sandbox that run_code has (sandbox.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/yaml.h"
#include "tools/sandbox.h"
#include "tools/tool.h"

namespace chimere::tools {

struct SkillArgument {
  std::string name;
  std::string type = "string";  // or integer, number, boolean
  std::string description;
  std::vector<std::string> choices;     // of a string; empty: any
  bool is_required = true;              // else `fallback`, or its place is left out
  std::optional<std::string> fallback;  // as it stands in the list of arguments
  size_t max_bytes = 4096;              // of its text
};

struct Skill {
  // A word of its own, or the place of an argument.
  struct Word {
    std::string text;  // the word; the name of the argument
    bool is_argument = false;
  };

  std::string name;
  std::string description;
  std::vector<Word> argv;  // the first is the program
  std::vector<SkillArgument> arguments;
  SandboxLimits limits;
  Policy policy = Policy::ask;
  std::string folder;  // of its file; a program that begins with ./ lies there
};

// Errors name file, line and column: of a placeholder that is no argument, an argument that has no place, a program that is
// not there.
Result<Skill> read_skill(const YamlNode& root, const std::string& name, const std::string& file);

struct SkillOptions {
  std::string bubblewrap = "bwrap";
  std::string prlimit =
      "/usr/bin/prlimit";  // sets limits from within, where processes are counted for the sandbox alone
};

// Whether skills can be run here; else why not.
Status skill_availability(const SkillOptions& options = {});

std::shared_ptr<Tool> make_skill(Skill skill, const SkillOptions& options = {});

// The arguments that the program gets for those of a call; what is wrong with these is an error.
Result<std::vector<std::string>> skill_words(const Skill& skill, const std::string& arguments);

}  // namespace chimere::tools
