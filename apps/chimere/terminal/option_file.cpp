#include "terminal/option_file.h"

#include <algorithm>
#include <map>
#include <utility>

#include "text/nearest_word.h"

namespace chimere::apps {
namespace {

constexpr size_t kMaxListedValues = 64;
constexpr size_t kMaxModelSections = 1000;

FilePlace place_of_name(const YamlNode& value) { return {value.key_line, value.key_column}; }

Error wrong_kind(const YamlNode& node, const std::string& file, const std::string& what, const char* expected) {
  return error_at(file, {node.line, node.column}, what + ": expected " + expected + ", found " + described(node));
}

Result<GivenOption> option_of(const YamlPair& pair, const std::string& file) {
  constexpr const char* kExpected = "a value or a list of values";
  const auto& [name, value] = pair;
  GivenOption option{name, {}, place_text(file, place_of_name(value))};
  if (value.kind == YamlNode::Kind::word) {
    option.values.push_back(value.word);
    return Result<GivenOption>{std::move(option)};
  }
  if (value.kind != YamlNode::Kind::list || value.items.empty() || value.items.size() > kMaxListedValues) {
    return wrong_kind(value, file, name, kExpected);
  }
  for (const YamlNode& item : value.items) {
    if (item.kind != YamlNode::Kind::word) return wrong_kind(item, file, name, kExpected);
    option.values.push_back(item.word);
  }
  return Result<GivenOption>{std::move(option)};
}

Result<std::vector<ModelSection>> sections_of_root(const YamlNode& root, const std::string& file) {
  constexpr const char* kFormerName = "models";
  if (root.kind != YamlNode::Kind::map) return wrong_kind(root, file, "the file", "a map");
  std::vector<ModelSection> sections;
  for (const auto& [key, models] : root.pairs) {
    if (key != kModelOptions && key != kFormerName) {
      const bool is_near = !nearest_word(key, {kModelOptions, kFormerName}).empty();
      return error_at(file, place_of_name(models),
                      std::string("expected `") + kModelOptions + "`, found '" + key + "'" +
                          (is_near ? std::string("; did you mean `") + kModelOptions + "`?" : ""));
    }
    if (!sections.empty()) {
      return error_at(file, place_of_name(models), std::string("expected `") + kModelOptions + "` once");
    }
    TRY_ASSIGN(sections, model_sections(models, file));
  }
  return Result<std::vector<ModelSection>>{std::move(sections)};
}

}  // namespace

std::string place_text(const std::string& file, FilePlace place) {
  return file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

Error error_at(const std::string& file, FilePlace place, const std::string& message) {
  return Error{Code::invalid_argument, place_text(file, place) + ": " + message};
}

Result<std::vector<ModelSection>> model_sections(const YamlNode& models, const std::string& file) {
  if (models.kind != YamlNode::Kind::map) {
    return wrong_kind(models, file, kModelOptions, "names of models, and below each its options");
  }
  if (models.pairs.size() > kMaxModelSections) {
    return error_at(file, place_of_name(models),
                    std::string(kModelOptions) + ": expected at most " + std::to_string(kMaxModelSections) +
                        " models, found " + std::to_string(models.pairs.size()));
  }
  std::vector<ModelSection> sections;
  for (const auto& [name, options] : models.pairs) {
    if (options.kind != YamlNode::Kind::map) return wrong_kind(options, file, name, "lines `option: value`");
    ModelSection section{name, place_text(file, place_of_name(options)), {}};
    for (const YamlPair& pair : options.pairs) {
      TRY_ASSIGN(GivenOption read, option_of(pair, file));
      section.options.push_back(std::move(read));
    }
    sections.push_back(std::move(section));
  }
  return Result<std::vector<ModelSection>>{std::move(sections)};
}

Result<std::vector<ModelSection>> parse_model_sections(std::string_view text, const std::string& file) {
  TRY_ASSIGN(const YamlNode root, parse_yaml(text, file));
  return sections_of_root(root, file);
}

Result<std::vector<ModelSection>> read_model_sections(const std::string& file) {
  TRY_ASSIGN(const YamlNode root, read_yaml(file));
  return sections_of_root(root, file);
}

std::vector<ModelSection> merged_sections(const std::vector<const std::vector<ModelSection>*>& by_rank) {
  std::map<std::string, ModelSection> merged;
  for (const std::vector<ModelSection>* sections : by_rank) {
    for (const ModelSection& section : *sections) {
      ModelSection& all = merged.try_emplace(section.name, ModelSection{section.name, section.place, {}}).first->second;
      for (const GivenOption& option : section.options) {
        const bool is_there = std::any_of(all.options.begin(), all.options.end(),
                                          [&](const GivenOption& other) { return other.name == option.name; });
        if (!is_there) all.options.push_back(option);
      }
    }
  }
  std::vector<ModelSection> sections;
  for (auto& [name, section] : merged) sections.push_back(std::move(section));
  return sections;
}

}  // namespace chimere::apps
