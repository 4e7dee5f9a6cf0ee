#include "models/registry.h"

#include <string>

#include "gguf/summary.h"

namespace chimere::models {

Result<Program> build_bert(WeightSource&);
Result<Program> build_falcon_h1(WeightSource&);
Result<Program> build_gpt_oss(WeightSource&);
Result<Program> build_granite_hybrid(WeightSource&);
Result<Program> build_jamba(WeightSource&);
Result<Program> build_llama(WeightSource&);
Result<Program> build_mamba(WeightSource&);
Result<Program> build_mamba2(WeightSource&);
Result<Program> build_nemotron_h(WeightSource&);
Result<Program> build_qwen2(WeightSource&);
Result<Program> build_qwen3(WeightSource&);
Result<Program> build_qwen35(WeightSource&);
Result<Program> build_qwen35_drafting(WeightSource&);
Result<Program> build_smollm3(WeightSource&);

namespace {

constexpr Architecture kArchitectures[] = {
    {"qwen35moe", build_qwen35, build_qwen35_drafting},
    {"qwen35", build_qwen35, build_qwen35_drafting},
    {"qwen3next", build_qwen35, build_qwen35_drafting},
    {"qwen3moe", build_qwen3},
    {"qwen3", build_qwen3},
    {"qwen2", build_qwen2},
    {"llama", build_llama},
    {"nemotron_h_moe", build_nemotron_h},
    {"nemotron_h", build_nemotron_h},
    {"mamba2", build_mamba2},
    {"mamba", build_mamba},
    {"granitehybrid", build_granite_hybrid},
    {"falcon-h1", build_falcon_h1},
    {"jamba", build_jamba},
    {"gpt-oss", build_gpt_oss},
    {"bert", build_bert},
    {"smollm3", build_smollm3},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

Result<Program> build_program(WeightSource& source, bool drafts) {
  const gguf::Metadata& m = source.metadata();
  if (m.contains("general.type")) {
    TRY_ASSIGN(const std::string_view type, m.get_string("general.type"));
    if (type != "model") {
      return Error{Code::unsupported, "general.type: expected 'model', found '" + std::string(type) + "'"};
    }
  }
  TRY_ASSIGN(const std::string_view arch, m.get_string("general.architecture"));
  for (const Architecture& a : kArchitectures) {
    if (a.name == arch) return drafts && a.build_drafting ? a.build_drafting(source) : a.build(source);
  }
  std::string known;
  for (const Architecture& a : kArchitectures) known += (known.empty() ? "" : ", ") + std::string(a.name);
  return Error{Code::unsupported,
               "general.architecture: '" + gguf::printable(arch, 64) + "' is not supported; expected one of " + known};
}

}  // namespace chimere::models
