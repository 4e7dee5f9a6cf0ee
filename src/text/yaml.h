// yaml.h  YAML as a tree that knows its lines, and a reader of its maps whose errors name file, line and column.
//
//   TRY_ASSIGN(const YamlNode root, parse_yaml(text, "code.yaml"));
//   YamlFields fields(root, "code.yaml");
//   fields.number("temperature", temperature, 0, 2);
//   TRY(fields.end());                                 // the first error, also that of a key nobody asked for
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace chimere {

struct YamlPair;

struct YamlNode {
  enum class Kind { nothing, word, list, map };
  Kind kind = Kind::nothing;
  std::string word;
  std::vector<YamlNode> items;  // of a list
  std::vector<YamlPair> pairs;  // of a map, in its order, each name once
  int line = 1, column = 1;
  int key_line = 1, key_column = 1;  // of its name, where it is a value of a map

  const YamlNode* find(std::string_view name) const;
};

struct YamlPair {
  std::string name;
  YamlNode value;
};

// Refuses more than 1 MiB, 32 levels or 20,000 nodes: what references stand for counts each time.
Result<YamlNode> parse_yaml(std::string_view text, const std::string& file);
Result<YamlNode> read_yaml(const std::string& path);

class YamlFields {
 public:
  // Both outlive the reader. A node that is no map is an error, nothing at all an empty map.
  YamlFields(const YamlNode& map, const std::string& file);

  // Null when it is absent or nothing; known from now on.
  const YamlNode* find(const std::string& name);
  // These leave `out` alone when the field is absent or wrong.
  void text(const std::string& name, std::string& out, size_t max_bytes = 4096);
  void number(const std::string& name, std::optional<float>& out, double low, double high);
  void integer(const std::string& name, std::optional<int32_t>& out, int64_t low, int64_t high);
  void boolean(const std::string& name, std::optional<bool>& out);
  // A word alone is a list of one.
  void words(const std::string& name, std::vector<std::string>& out, size_t max_count, size_t max_bytes = 1024);

  // Keeps the first error only.
  void fail(const YamlNode& at, const std::string& message);
  void take(Status status);
  // What went wrong with the fields that were read.
  Status so_far() const;
  // The same, or which key is unknown and which known one is nearest to it.
  Status end();

 private:
  void fail_kind(const YamlNode& at, const std::string& name, const char* expected);

  const YamlNode& map_;
  const std::string& file_;
  std::set<std::string> known_;
  std::optional<Error> error_;
};

// "a map", "a list", "the word 'x'", "nothing"
std::string described(const YamlNode& node);

}  // namespace chimere
