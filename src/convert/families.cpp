#include "convert/families.h"

namespace chimere::convert {

void bamba_rules(Recipe&);
void bert_rules(Recipe&);
void dflash_rules(Recipe&);
void falcon_h1_rules(Recipe&);
void gpt_oss_rules(Recipe&);
void granite_rules(Recipe&);
void jamba_rules(Recipe&);
void llama_rules(Recipe&);
void mamba2_rules(Recipe&);
void mamba_rules(Recipe&);
void nemotron_rules(Recipe&);
void qwen35_rules(Recipe&);
void qwen_rules(Recipe&);
void smollm3_rules(Recipe&);

namespace {

constexpr Family kFamilies[] = {
    {"Qwen3_5MoeForConditionalGeneration", "qwen35moe", qwen35_rules},
    {"Qwen3_5MoeForCausalLM", "qwen35moe", qwen35_rules},
    {"Qwen3_5ForConditionalGeneration", "qwen35", qwen35_rules},
    {"Qwen3_5ForCausalLM", "qwen35", qwen35_rules},
    {"Qwen3NextForCausalLM", "qwen3next", qwen35_rules},
    {"Qwen3MoeForCausalLM", "qwen3moe", qwen_rules},
    {"Qwen3ForCausalLM", "qwen3", qwen_rules},
    {"Qwen2ForCausalLM", "qwen2", qwen_rules},
    {"LlamaForCausalLM", "llama", llama_rules},
    {"MistralForCausalLM", "llama", llama_rules},
    {"MixtralForCausalLM", "llama", llama_rules},
    {"NemotronHForCausalLM", "nemotron_h", nemotron_rules},
    {"Mamba2ForCausalLM", "mamba2", mamba2_rules},
    {"MambaForCausalLM", "mamba", mamba_rules},
    {"FalconMambaForCausalLM", "mamba", mamba_rules},
    {"GraniteMoeHybridForCausalLM", "granitehybrid", granite_rules},
    {"BambaForCausalLM", "granitehybrid", bamba_rules},
    {"FalconH1ForCausalLM", "falcon-h1", falcon_h1_rules},
    {"JambaForCausalLM", "jamba", jamba_rules},
    {"GptOssForCausalLM", "gpt-oss", gpt_oss_rules},
    {"BertModel", "bert", bert_rules},
    {"BertForSequenceClassification", "bert", bert_rules},
    {"XLMRobertaModel", "bert", bert_rules},
    {"XLMRobertaForSequenceClassification", "bert", bert_rules},
    {"SmolLM3ForCausalLM", "smollm3", smollm3_rules},
    {"DFlashDraftModel", "dflash", dflash_rules},
};
// One model class, two architectures: with experts it has another name.
constexpr Family kNemotronExperts = {"NemotronHForCausalLM", "nemotron_h_moe", nemotron_rules};

}  // namespace

std::span<const Family> families() { return kFamilies; }

Result<const Family*> find_family(const HfConfig& config) {
  TRY_ASSIGN(const std::string name, config.architecture());
  if (name == kNemotronExperts.model_class && config.has("n_routed_experts")) return &kNemotronExperts;
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.model_class == name) return &family;
    known += (known.empty() ? "" : ", ") + std::string(family.model_class);
  }
  return Error{Code::unsupported, "config.json: architectures: '" + name.substr(0, 80) +
                                      "' cannot be converted; expected one of " + known};
}

}  // namespace chimere::convert
