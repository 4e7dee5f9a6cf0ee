// pretokenizer.cpp  The names of `tokenizer.ggml.pre` and what they stand for.
#include "tokenizer/pretokenizer.h"

#include <algorithm>
#include <array>

#include "tokenizer/scanners.h"

namespace chimere::tokenizer {
namespace {

struct Family {
  std::array<std::string_view, 9> names;  // unused places are empty
  std::array<Scanner, 6> stages;          // unused places are null
  bool ignore_merges = false;
  bool add_bos = false;
  bool nfc = false;
};

constexpr Family kFamilies[] = {
    {.names = {"qwen35"}, .stages = {scan_qwen35}, .nfc = true},
    {.names = {"qwen2", "deepseek-r1-qwen"}, .stages = {scan_qwen2}, .nfc = true},
    {.names = {"megrez", "stablelm2", "hunyuan", "solar-open", "grok-2"}, .stages = {scan_qwen2}},
    {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"},
     .stages = {scan_llama3},
     .ignore_merges = true,
     .add_bos = true},
    {.names = {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, .stages = {scan_llama3}},
    {.names = {"gpt-4o", "llama4", "kanana2", "minimax-m2"}, .stages = {scan_gpt4o}},
    {.names = {"tekken"}, .stages = {scan_tekken}, .ignore_merges = true, .add_bos = true},
    {.names = {"gpt-2", "phi-2", "mpt", "olmo", "jais", "exaone4", "mellum", "gigachat", "modern-bert"},
     .stages = {scan_gpt2}},
    {.names = {"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"},
     .stages = {scan_number, scan_gpt2}},
    {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm"},
     .stages = {scan_three_numbers, scan_han_kana, scan_deepseek3}},
    {.names = {"deepseek-coder"}, .stages = {scan_newline, scan_letters, scan_punctuation, scan_asian, scan_number}},
    {.names = {"deepseek-llm"},
     .stages = {scan_newline, scan_cased_letters, scan_wide_punctuation, scan_last_spaces, scan_asian, scan_numbers}},
    {.names = {"falcon"}, .stages = {scan_falcon_punctuation, scan_gpt2, scan_three_ascii_digits}},
    {.names = {"default"}, .stages = {scan_plain_punctuation, scan_gpt2, scan_numbers, scan_three_ascii_digits}},
};

}  // namespace

std::optional<PreTokenizer> PreTokenizer::named(std::string_view pre) {
  if (pre.empty()) return std::nullopt;
  for (const Family& family : kFamilies) {
    if (std::find(family.names.begin(), family.names.end(), pre) == family.names.end()) continue;
    PreTokenizer result;
    for (const Scanner stage : family.stages) {
      if (stage != nullptr) result.stages.push_back(stage);
    }
    result.ignore_merges = family.ignore_merges;
    result.add_bos = family.add_bos;
    result.nfc = family.nfc;
    return result;
  }
  return std::nullopt;
}

}  // namespace chimere::tokenizer
