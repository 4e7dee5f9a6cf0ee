// matcher_file_for_test.h  The bytes of a small file of a matcher: its score is the share of the question's rarity that a text
// has, `weight` times.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gguf/writer.h"

namespace chimere::fixture {

struct MatcherParts {
  std::vector<std::string> stems = {"king", "queen"};
  // Tensors in floats with their shapes.
  std::map<std::string, std::pair<Shape, std::vector<float>>> tensors;
  std::string architecture = "chimere-matcher";
  int64_t version = 1;
  double power = 0.5, cosine_weight = 0;
};

inline MatcherParts matcher_parts(float weight = 1) {
  constexpr size_t kInputs = 105;
  MatcherParts parts;
  std::vector<float> vectors(64), direct(kInputs);
  vectors[0] = 1;
  vectors[32] = 0.8f;
  vectors[33] = 0.6f;
  direct[2] = weight;
  parts.tensors["vectors"] = {{32, 2, 1, 1}, vectors};
  parts.tensors["steps"] = {{5, 4, 1, 1}, std::vector<float>(20, 0.25f)};
  parts.tensors["answers"] = {{32, 8, 1, 1}, std::vector<float>(256)};
  parts.tensors["direct"] = {{kInputs, 1, 1, 1}, direct};
  parts.tensors["hidden"] = {{kInputs, 2, 1, 1}, std::vector<float>(2 * kInputs)};
  parts.tensors["by_kind"] = {{2, 8, 1, 1}, std::vector<float>(16)};
  parts.tensors["output"] = {{2, 1, 1, 1}, std::vector<float>(2)};
  return parts;
}

inline std::vector<std::byte> matcher_bytes(const MatcherParts& parts) {
  gguf::Writer writer;
  gguf::Value stems;
  stems.type = gguf::ValueType::string;
  stems.is_array = true;
  stems.data = parts.stems;
  writer.metadata().set_string("general.architecture", parts.architecture);
  writer.metadata().set_int("chimere-matcher.version", gguf::ValueType::u32, parts.version);
  writer.metadata().set_float("chimere-matcher.power", parts.power);
  writer.metadata().set_float("chimere-matcher.cosine_weight", parts.cosine_weight);
  writer.metadata().set("chimere-matcher.stems", stems);
  for (const auto& [name, tensor] : parts.tensors) {
    const Status added = writer.add_tensor(name, DType::F32, tensor.first, std::as_bytes(std::span(tensor.second)));
    if (!added) return {};
  }
  auto bytes = writer.write_memory();
  return bytes ? std::move(*bytes) : std::vector<std::byte>();
}

}  // namespace chimere::fixture
