#include "tools/skill.h"

#include <algorithm>
#include <filesystem>

#include "base/platform/child_process.h"
#include "tools/arguments.h"
#include "tools/toolbox.h"

namespace chimere::tools {
namespace {

constexpr size_t kMaxWords = 64;
constexpr size_t kMaxWordBytes = 4096;
constexpr size_t kMaxSkillArguments = 16;
constexpr size_t kMaxChoices = 64;
constexpr int64_t kMaxArgumentValueBytes = int64_t{64} << 10;

bool is_argument_name(std::string_view name) {
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// The name in "{name}"; empty where it is another word.
std::string_view placeholder(std::string_view word) {
  if (word.size() < 3 || word.front() != '{' || word.back() != '}') return {};
  const std::string_view name = word.substr(1, word.size() - 2);
  return is_argument_name(name) ? name : std::string_view();
}

const SkillArgument* find_argument(const Skill& skill, std::string_view name) {
  for (const SkillArgument& argument : skill.arguments) {
    if (argument.name == name) return &argument;
  }
  return nullptr;
}

Result<SkillArgument> read_argument(const std::string& name, const YamlNode& map, const std::string& file) {
  SkillArgument argument;
  argument.name = name;
  YamlFields fields(map, file);
  if (!is_argument_name(name)) {
    fields.fail(map, "expected an argument's name of 1 to 32 small letters, digits and _, found '" + name + "'");
  }
  fields.text("type", argument.type);
  fields.text("description", argument.description);
  fields.words("enum", argument.choices, kMaxChoices);
  std::optional<bool> required;
  fields.boolean("required", required);
  if (const YamlNode* fallback = fields.find("default")) {
    if (fallback->kind != YamlNode::Kind::word) {
      fields.fail(*fallback, "default: expected a word, found " + described(*fallback));
    }
    argument.fallback = fallback->word;
  }
  std::optional<int32_t> max_bytes;
  fields.integer("max_bytes", max_bytes, 1, kMaxArgumentValueBytes);
  TRY(fields.end());
  if (max_bytes) argument.max_bytes = static_cast<size_t>(*max_bytes);
  argument.is_required = required.value_or(!argument.fallback);
  const std::string& type = argument.type;
  if (type != "string" && type != "integer" && type != "number" && type != "boolean") {
    fields.fail(*map.find("type"), "type: expected string, integer, number or boolean, found '" + type + "'");
  }
  if (!argument.choices.empty() && type != "string") fields.fail(*map.find("enum"), "enum: expected type string");
  if (argument.is_required && argument.fallback) {
    fields.fail(*map.find("default"), "default: expected none where the argument is required");
  }
  TRY(fields.so_far());
  return Result<SkillArgument>{std::move(argument)};
}

void read_arguments_of(YamlFields& fields, const std::string& file, Skill& skill) {
  const YamlNode* map = fields.find("arguments");
  if (!map) return;
  if (map->kind != YamlNode::Kind::map || map->pairs.size() > kMaxSkillArguments) {
    return fields.fail(*map, "arguments: expected a map of at most " + std::to_string(kMaxSkillArguments) +
                                 " names, found " + described(*map));
  }
  for (const auto& [name, value] : map->pairs) {
    auto argument = read_argument(name, value, file);
    if (!argument) return fields.take(argument.error());
    skill.arguments.push_back(std::move(*argument));
  }
}

// One word of argv, held against the arguments there are.
void read_word(YamlFields& fields, const YamlNode& node, Skill& skill) {
  const std::string& text = node.word;
  const std::string_view name = placeholder(text);
  if (node.kind != YamlNode::Kind::word || text.size() > kMaxWordBytes || text.find('\0') != std::string::npos) {
    return fields.fail(
        node, "argv: expected words of at most " + std::to_string(kMaxWordBytes) + " bytes, found " + described(node));
  }
  if (!name.empty() && skill.argv.empty()) return fields.fail(node, "argv: expected a program first, found " + text);
  if (!name.empty() && !find_argument(skill, name)) {
    return fields.fail(node, "argv: expected placeholders of `arguments`, found " + text);
  }
  for (const SkillArgument& argument : skill.arguments) {
    const std::string inside = "{" + argument.name + "}";
    if (name.empty() && text.find(inside) != std::string::npos) {
      return fields.fail(node, "argv: expected " + inside + " as an argument of its own, found '" + text + "'");
    }
  }
  skill.argv.push_back({name.empty() ? text : std::string(name), !name.empty()});
}

// Where the program lies; empty where it is none.
std::string program_of(const Skill& skill) {
  const std::string& named = skill.argv.front().text;
  return find_program(named.starts_with("./") ? skill.folder + named.substr(1) : named);
}

void read_argv(YamlFields& fields, const YamlNode& root, Skill& skill) {
  const YamlNode* list = fields.find("argv");
  if (!list || list->kind != YamlNode::Kind::list || list->items.empty() || list->items.size() > kMaxWords) {
    return fields.fail(list ? *list : root, "argv: expected a list of 1 to " + std::to_string(kMaxWords) +
                                                " words, the program first, found " +
                                                (list ? described(*list) : "nothing"));
  }
  for (const YamlNode& node : list->items) read_word(fields, node, skill);
  if (!fields.so_far()) return;
  if (program_of(skill).empty()) {
    fields.fail(list->items.front(), "argv: expected a program, found '" + skill.argv.front().text +
                                         "', which is not there or may not be executed");
  }
  for (const SkillArgument& argument : skill.arguments) {
    const bool has_place = std::any_of(skill.argv.begin(), skill.argv.end(), [&](const Skill::Word& word) {
      return word.is_argument && word.text == argument.name;
    });
    if (!has_place) fields.fail(*list, "argv: expected {" + argument.name + "} among the words: it has no place");
  }
}

Json schema_of(const Skill& skill) {
  Json schema = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  schema["required"] = Json::array();
  for (const SkillArgument& argument : skill.arguments) {
    Json& property = schema["properties"][argument.name] = {{"type", argument.type}};
    if (!argument.description.empty()) property["description"] = argument.description;
    if (!argument.choices.empty()) property["enum"] = argument.choices;
    if (argument.is_required) schema["required"].push_back(argument.name);
  }
  return schema;
}

class SkillTool : public Tool {
 public:
  SkillTool(Skill skill, const SkillOptions& options)
      : skill_(std::move(skill)), spec_{skill_.name, skill_.description, to_text(schema_of(skill_))} {
    std::vector<std::string> seen = {"/usr", "/bin"};
    std::error_code ignored;
    // Names such as awk are links through here.
    if (std::filesystem::is_directory("/etc/alternatives", ignored)) seen.emplace_back("/etc/alternatives");
    program_ = program_of(skill_);
    if (!program_.starts_with("/usr/") && !program_.starts_with("/bin/")) {
      seen.push_back(std::filesystem::path(program_).parent_path().string());
    }
    const SandboxLimits& limits = skill_.limits;
    before_ = sandbox_arguments(options.bubblewrap, limits, seen);
    const int64_t seconds = std::chrono::ceil<std::chrono::seconds>(limits.time).count() + 1;
    before_.insert(before_.end(), {"--", options.prlimit, "--as=" + std::to_string(limits.memory_bytes),
                                   "--nproc=" + std::to_string(limits.processes), "--cpu=" + std::to_string(seconds),
                                   "--fsize=" + std::to_string(limits.folder_bytes), "--nofile=64", "--core=0", "--"});
  }

  const ToolSpec& spec() const override { return spec_; }

  ToolResult run(const std::string& arguments, const ToolContext& context) override {
    const auto words = skill_words(skill_, arguments);
    if (!words) return {skill_.name + ": " + words.error().message, true};
    std::vector<std::string> all = before_;
    all.push_back(program_);
    all.insert(all.end(), words->begin() + 1, words->end());
    const auto began = std::chrono::steady_clock::now();
    const auto run = run_in_sandbox(skill_.limits, all, {}, context);
    if (!run) return {skill_.name + ": " + run.error().message, true};
    return sandbox_result(*run, skill_.limits, began);
  }

 private:
  const Skill skill_;
  const ToolSpec spec_;
  std::string program_;
  std::vector<std::string> before_;  // all that stands before the program
};

}  // namespace

Result<Skill> read_skill(const YamlNode& root, const std::string& name, const std::string& file) {
  Skill skill;
  skill.name = name;
  skill.folder = std::filesystem::absolute(std::filesystem::path(file)).parent_path().string();
  YamlFields fields(root, file);
  std::string said, policy;
  fields.text("name", said, 64);
  if (!is_tool_name(name)) {
    fields.fail(root, "expected a file's name of 1 to 64 letters, digits, _ and -, found '" + name + "'");
  } else if (!said.empty() && said != name) {
    fields.fail(*root.find("name"), "name: expected that of the file, '" + name + "', found '" + said + "'");
  }
  fields.text("description", skill.description);
  if (skill.description.empty()) fields.fail(root, "expected `description`, what a model is told of it");
  read_arguments_of(fields, file, skill);
  if (fields.so_far()) read_argv(fields, root, skill);
  std::optional<float> seconds;
  std::optional<int32_t> output_bytes;
  fields.number("seconds", seconds, 0.1, 600);
  fields.integer("output_bytes", output_bytes, 1, static_cast<int64_t>(kMaxResultBytes));
  fields.text("policy", policy);
  if (const auto parsed = parse_policy(policy); parsed) {
    skill.policy = *parsed;
  } else if (!policy.empty()) {
    fields.fail(*root.find("policy"), parsed.error().message);
  }
  TRY(fields.end());
  if (seconds) skill.limits.time = std::chrono::milliseconds(static_cast<int64_t>(*seconds * 1000));
  if (output_bytes) skill.limits.output_bytes = static_cast<uint64_t>(*output_bytes);
  return Result<Skill>{std::move(skill)};
}

Result<std::vector<std::string>> skill_words(const Skill& skill, const std::string& arguments) {
  TRY_ASSIGN(const Json given, read_arguments(arguments));
  std::vector<std::string> words;
  bool is_behind_dashes = false;
  for (const Skill::Word& word : skill.argv) {
    if (!word.is_argument) {
      words.push_back(word.text);
      is_behind_dashes = is_behind_dashes || word.text == "--";
      continue;
    }
    const SkillArgument& argument = *find_argument(skill, word.text);
    if (!given.contains(argument.name)) {
      if (argument.fallback) words.push_back(*argument.fallback);
      continue;
    }
    const Json& value = given[argument.name];
    std::string text = value.is_string() ? value.get<std::string>() : to_text(value);
    if (text.size() > argument.max_bytes || text.find('\0') != std::string::npos) {
      return Error{Code::invalid_argument, argument.name + ": expected at most " + std::to_string(argument.max_bytes) +
                                               " bytes and no zero byte, found " + std::to_string(text.size())};
    }
    // A program would read it as an option, which nobody has offered.
    if (value.is_string() && text.starts_with('-') && !is_behind_dashes) {
      return Error{Code::invalid_argument, argument.name + ": expected a text that does not begin with '-'"};
    }
    words.push_back(std::move(text));
  }
  return Result<std::vector<std::string>>{std::move(words)};
}

Status skill_availability(const SkillOptions& options) {
  const auto refused = [](const std::string& why) { return Error{Code::unsupported, "skills can not be run: " + why}; };
  if (find_program(options.bubblewrap).empty()) {
    return refused(options.bubblewrap + " is not there (Debian package bubblewrap)");
  }
  if (find_program(options.prlimit).empty()) {
    return refused(options.prlimit + " is not there (Debian package util-linux)");
  }
  Skill echo;
  echo.name = "try";
  echo.argv = {{"/usr/bin/printf", false}, {"%s", false}, {"42", false}};
  const ToolResult tried = make_skill(std::move(echo), options)->run("{}", {});
  if (tried.is_error || tried.text != "42") return refused("a sandbox cannot be made here: " + tried.text);
  return Ok{};
}

std::shared_ptr<Tool> make_skill(Skill skill, const SkillOptions& options) {
  return std::make_shared<SkillTool>(std::move(skill), options);
}

}  // namespace chimere::tools
