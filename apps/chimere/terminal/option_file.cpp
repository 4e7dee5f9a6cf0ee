#include "terminal/option_file.h"

#include <yaml-cpp/yaml.h>

#include <fstream>
#include <set>
#include <utility>

#include "text/nearest_word.h"

namespace chimere::apps {
namespace {

constexpr size_t kMaxOptionFileBytes = size_t{1} << 20;
constexpr size_t kMaxListedValues = 64;

FilePlace place_of(const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  return {mark.line + 1, mark.column + 1};
}

const char* kind_of(const YAML::Node& node) {
  if (node.IsMap()) return "a map";
  if (node.IsSequence()) return "a list";
  return node.IsNull() ? "nothing" : "a single value";
}

// The pairs of a map whose keys are words, each once.
using Pairs = std::vector<std::pair<YAML::Node, YAML::Node>>;
Result<Pairs> pairs_of(const YAML::Node& map, const std::string& file, const std::string& what) {
  if (!map.IsMap()) return error_at(file, place_of(map), what + ": expected a map, found " + kind_of(map));
  Pairs pairs;
  std::set<std::string> seen;
  for (const auto& pair : map) {
    if (!pair.first.IsScalar()) return error_at(file, place_of(pair.first), what + ": expected a name as the key");
    if (!seen.insert(pair.first.Scalar()).second) {
      return error_at(file, place_of(pair.first), what + ": '" + pair.first.Scalar() + "' is there twice");
    }
    pairs.emplace_back(pair.first, pair.second);
  }
  return Result<Pairs>{std::move(pairs)};
}

Result<FileOption> option_of(const YAML::Node& key, const YAML::Node& value, const std::string& file) {
  FileOption option{key.Scalar(), {}, place_of(key)};
  const auto wrong = [&](const YAML::Node& node) {
    return error_at(file, place_of(node),
                    option.name + ": expected a value or a list of values, found " + kind_of(node));
  };
  if (value.IsScalar()) {
    option.values.push_back(value.Scalar());
    return Result<FileOption>{std::move(option)};
  }
  if (!value.IsSequence() || value.size() == 0 || value.size() > kMaxListedValues) return wrong(value);
  for (const auto& item : value) {
    if (!item.IsScalar()) return wrong(item);
    option.values.push_back(item.Scalar());
  }
  return Result<FileOption>{std::move(option)};
}

Result<std::vector<ModelSection>> sections_of(const YAML::Node& root, const std::string& file) {
  constexpr const char* kModels = "models";
  TRY_ASSIGN(const Pairs parts, pairs_of(root, file, "the file"));
  std::vector<ModelSection> sections;
  for (const auto& [key, models] : parts) {
    if (key.Scalar() != kModels) {
      const bool is_near = !nearest_word(key.Scalar(), {kModels}).empty();
      return error_at(file, place_of(key),
                      "expected `models`, found '" + key.Scalar() + "'" + (is_near ? "; did you mean `models`?" : ""));
    }
    TRY_ASSIGN(const Pairs named, pairs_of(models, file, kModels));
    for (const auto& [name, options] : named) {
      ModelSection section{name.Scalar(), place_of(name), {}};
      TRY_ASSIGN(const Pairs pairs, pairs_of(options, file, name.Scalar()));
      for (const auto& [option, value] : pairs) {
        TRY_ASSIGN(FileOption read, option_of(option, value, file));
        section.options.push_back(std::move(read));
      }
      sections.push_back(std::move(section));
    }
  }
  return Result<std::vector<ModelSection>>{std::move(sections)};
}

}  // namespace

Error error_at(const std::string& file, FilePlace place, const std::string& message) {
  return Error{Code::invalid_argument,
               file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": " + message};
}

Result<std::vector<ModelSection>> parse_model_sections(std::string_view text, const std::string& file) {
  if (text.size() > kMaxOptionFileBytes) {
    return Error{Code::invalid_argument, file + ": expected at most " + std::to_string(kMaxOptionFileBytes) + " bytes"};
  }
  try {
    return sections_of(YAML::Load(std::string(text)), file);
  } catch (const YAML::Exception& e) {
    return error_at(file, {e.mark.line + 1, e.mark.column + 1}, e.msg);
  }
}

Result<std::vector<ModelSection>> read_model_sections(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return Error{Code::not_found, file + ": can not be read"};
  std::string text(kMaxOptionFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return parse_model_sections(text, file);
}

}  // namespace chimere::apps
