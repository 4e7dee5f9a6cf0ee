#include "convert/pre_tokenizer_names.h"

namespace chimere::convert {
namespace {

constexpr char kQwen35[] = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
                           R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen2[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kLlama3[] = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                           R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kGpt4o[] =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kTekken[] = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
                           R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
                           R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kDeepseekWords[] =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Known {
  const char* name;
  std::vector<std::string> steps;
};

const std::vector<Known>& known() {
  static const std::vector<Known> table = {
      {"qwen35", {kQwen35}},
      {"qwen2", {kQwen2}},
      {"llama-bpe", {kLlama3}},
      {"gpt-4o", {kGpt4o}},
      {"tekken", {kTekken}},
      {"gpt-2", {"<gpt2>"}},
      {"starcoder", {"<digits>", "<gpt2>"}},
      {"deepseek-v3", {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+", kDeepseekWords}},
      {"falcon", {"<punctuation>", "<gpt2>", "[0-9][0-9][0-9]"}},
  };
  return table;
}

// The name says more than the expression: whether whole words skip the merges, and whether text is normalised.
std::string variant(const std::string& name, const Splitting& s) {
  if (name == "llama-bpe" && !s.ignore_merges) return "dbrx";
  if (name == "qwen2" && !s.nfc) return "stablelm2";
  return name;
}

}  // namespace

Result<std::string> pre_tokenizer_name(const Splitting& splitting) {
  for (const Known& k : known()) {
    if (k.steps == splitting.steps) return variant(k.name, splitting);
  }
  std::string steps;
  for (const std::string& step : splitting.steps) steps += (steps.empty() ? "" : "  then  ") + step;
  return Error{Code::unsupported, "tokenizer.json: pre_tokenizer: no known name stands for this way to split text: " +
                                      (steps.empty() ? "(nothing)" : steps)};
}

}  // namespace chimere::convert
