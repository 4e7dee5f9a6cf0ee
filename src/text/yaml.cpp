#include "text/yaml.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "text/nearest_word.h"

namespace chimere {
namespace {

constexpr size_t kMaxYamlBytes = size_t{1} << 20;
constexpr int kMaxYamlDepth = 32;
constexpr size_t kMaxYamlNodes = 20'000;
constexpr size_t kMaxShownWord = 64;

Error yaml_error(const std::string& file, int line, int column, const std::string& message) {
  return Error{Code::invalid_argument,
               file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + message};
}

class Copier {
 public:
  explicit Copier(const std::string& file) : file_(file) {}

  Result<YamlNode> copy(const YAML::Node& from, int depth) {
    YamlNode node;
    node.line = from.Mark().line + 1;
    node.column = from.Mark().column + 1;
    if (depth > kMaxYamlDepth) return error(node, "expected at most " + std::to_string(kMaxYamlDepth) + " levels");
    if (++n_nodes_ > kMaxYamlNodes) {
      return error(node, "expected at most " + std::to_string(kMaxYamlNodes) + " values");
    }
    if (from.IsScalar()) {
      node.kind = YamlNode::Kind::word;
      node.word = from.Scalar();
    } else if (from.IsSequence()) {
      node.kind = YamlNode::Kind::list;
      for (const auto& item : from) {
        TRY_ASSIGN(YamlNode copied, copy(item, depth + 1));
        node.items.push_back(std::move(copied));
      }
    } else if (from.IsMap()) {
      node.kind = YamlNode::Kind::map;
      TRY(copy_pairs(from, depth, node));
    }
    return Result<YamlNode>{std::move(node)};
  }

 private:
  Status copy_pairs(const YAML::Node& from, int depth, YamlNode& node) {
    for (const auto& pair : from) {
      YamlNode at;
      at.line = pair.first.Mark().line + 1;
      at.column = pair.first.Mark().column + 1;
      if (!pair.first.IsScalar()) return error(at, "expected a name as the key");
      if (node.find(pair.first.Scalar())) return error(at, "'" + pair.first.Scalar() + "' is there twice");
      TRY_ASSIGN(YamlNode copied, copy(pair.second, depth + 1));
      copied.key_line = at.line;
      copied.key_column = at.column;
      node.pairs.push_back({pair.first.Scalar(), std::move(copied)});
    }
    return Ok{};
  }
  Error error(const YamlNode& at, const std::string& message) const {
    return yaml_error(file_, at.line, at.column, message);
  }

  const std::string& file_;
  size_t n_nodes_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view name) const {
  const auto found = std::find_if(pairs.begin(), pairs.end(), [&](const YamlPair& pair) { return pair.name == name; });
  return found == pairs.end() ? nullptr : &found->value;
}

std::string described(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::nothing: return "nothing";
    case YamlNode::Kind::list: return "a list";
    case YamlNode::Kind::map: return "a map";
    case YamlNode::Kind::word: break;
  }
  return "'" + node.word.substr(0, kMaxShownWord) + "'";
}

Result<YamlNode> parse_yaml(std::string_view text, const std::string& file) {
  if (text.size() > kMaxYamlBytes) {
    return Error{Code::invalid_argument, file + ": expected at most " + std::to_string(kMaxYamlBytes) + " bytes"};
  }
  try {
    return Copier(file).copy(YAML::Load(std::string(text)), 0);
  } catch (const YAML::Exception& e) {
    return yaml_error(file, e.mark.line + 1, e.mark.column + 1, e.msg);
  }
}

Result<YamlNode> read_yaml(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Code::not_found, path + ": can not be read"};
  std::string text(kMaxYamlBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return parse_yaml(text, path);
}

YamlFields::YamlFields(const YamlNode& map, const std::string& file) : map_(map), file_(file) {
  if (map.kind != YamlNode::Kind::map && map.kind != YamlNode::Kind::nothing) {
    fail(map, "expected a map, found " + described(map));
  }
}

const YamlNode* YamlFields::find(const std::string& name) {
  known_.insert(name);
  const YamlNode* found = map_.find(name);
  return found && found->kind != YamlNode::Kind::nothing ? found : nullptr;
}

void YamlFields::fail(const YamlNode& at, const std::string& message) {
  if (!error_) error_ = yaml_error(file_, at.line, at.column, message);
}

void YamlFields::take(Status status) {
  if (!status && !error_) error_ = status.error();
}

void YamlFields::fail_kind(const YamlNode& at, const std::string& name, const char* expected) {
  fail(at, name + ": expected " + expected + ", found " + described(at));
}

void YamlFields::text(const std::string& name, std::string& out, size_t max_bytes) {
  const YamlNode* node = find(name);
  if (!node) return;
  if (node->kind != YamlNode::Kind::word) return fail_kind(*node, name, "a text");
  if (node->word.size() > max_bytes) {
    return fail(*node, name + ": expected at most " + std::to_string(max_bytes) + " bytes, found " +
                           std::to_string(node->word.size()));
  }
  out = node->word;
}

void YamlFields::number(const std::string& name, std::optional<float>& out, double low, double high) {
  const YamlNode* node = find(name);
  if (!node) return;
  char* end = nullptr;
  const double value = std::strtod(node->word.c_str(), &end);
  const bool is_number = node->kind == YamlNode::Kind::word && !node->word.empty() && *end == '\0';
  if (!is_number || !std::isfinite(value) || value < low || value > high) {
    return fail(*node, name + ": expected a number from " + std::to_string(low) + " to " + std::to_string(high) +
                           ", found " + described(*node));
  }
  out = static_cast<float>(value);
}

void YamlFields::integer(const std::string& name, std::optional<int32_t>& out, int64_t low, int64_t high) {
  const YamlNode* node = find(name);
  if (!node) return;
  const bool is_short = node->kind == YamlNode::Kind::word && !node->word.empty() && node->word.size() <= 11;
  const bool is_integer = is_short &&
                          node->word.find_first_not_of("0123456789", node->word[0] == '-') == std::string::npos &&
                          node->word != "-";
  const int64_t value = is_integer ? std::strtoll(node->word.c_str(), nullptr, 10) : 0;
  if (!is_integer || value < low || value > high) {
    return fail(*node, name + ": expected a whole number from " + std::to_string(low) + " to " + std::to_string(high) +
                           ", found " + described(*node));
  }
  out = static_cast<int32_t>(value);
}

void YamlFields::boolean(const std::string& name, std::optional<bool>& out) {
  const YamlNode* node = find(name);
  if (!node) return;
  for (const char* yes : {"true", "yes", "on"}) {
    if (node->word == yes) out = true;
  }
  for (const char* no : {"false", "no", "off"}) {
    if (node->word == no) out = false;
  }
  if (!out || node->kind != YamlNode::Kind::word) fail_kind(*node, name, "true or false");
}

void YamlFields::words(const std::string& name, std::vector<std::string>& out, size_t max_count, size_t max_bytes) {
  const YamlNode* node = find(name);
  if (!node) return;
  if (node->kind == YamlNode::Kind::map) return fail_kind(*node, name, "a list of texts");
  const std::vector<YamlNode> one = {*node};
  const std::vector<YamlNode>& items = node->kind == YamlNode::Kind::list ? node->items : one;
  if (items.size() > max_count) {
    return fail(*node, name + ": expected at most " + std::to_string(max_count) + " texts, found " +
                           std::to_string(items.size()));
  }
  std::vector<std::string> words;
  for (const YamlNode& item : items) {
    if (item.kind != YamlNode::Kind::word || item.word.empty() || item.word.size() > max_bytes) {
      return fail(item,
                  name + ": expected texts of 1 to " + std::to_string(max_bytes) + " bytes, found " + described(item));
    }
    words.push_back(item.word);
  }
  out = std::move(words);
}

Status YamlFields::so_far() const {
  if (error_) return *error_;
  return Ok{};
}

Status YamlFields::end() {
  for (const auto& [name, value] : map_.pairs) {
    if (error_ || known_.count(name) > 0) continue;
    const std::string near = nearest_word(name, {known_.begin(), known_.end()});
    error_ = yaml_error(file_, value.key_line, value.key_column,
                        "'" + name.substr(0, kMaxShownWord) + "' is not known here" +
                            (near.empty() ? "" : "; did you mean `" + near + "`?"));
  }
  return so_far();
}

}  // namespace chimere
