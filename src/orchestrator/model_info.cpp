// model_info.cpp  Reads the facts off the program that runs.
#include "orchestrator/model_info.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "orchestrator/chat_model.h"

namespace chimere::orchestrator {
namespace {

constexpr std::string_view kMix = "_mix";
constexpr std::string_view kFfn = "_ffn";
constexpr std::string_view kScan = "selective_scan";  // the first Mamba's mixer
constexpr std::string_view kEncoderFfn = "gelu";      // stands in the middle of an encoder's feed-forward part

std::string without(std::string_view name, std::string_view ending) {
  return std::string(name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name);
}

// A mixer begins a layer, a feed-forward part ends it.
std::vector<ModelInfo::Layer> layers_of(const Program& program) {
  std::vector<ModelInfo::Layer> layers;
  for (const Op& op : program.trunk()) {
    const auto* attention = std::get_if<op::Attention>(&op);
    if (attention && attention->q == kNone) continue;  // a drafter's
    const std::string_view name = op_name(op);
    if (name == "attention" || name == kScan || name.ends_with(kMix)) {
      layers.push_back({name == kScan ? "mamba" : without(name, kMix), "none"});
    } else if (name.ends_with(kFfn) || name == kEncoderFfn) {
      if (layers.empty() || layers.back().ffn != "none") layers.push_back({"none", "none"});
      layers.back().ffn = name == kEncoderFfn ? "dense" : without(name, kFfn);
    }
  }
  return layers;
}

std::vector<ModelInfo::Format> formats_of(const Program& program) {
  std::map<DType, ModelInfo::Format> by_type;
  for (const TensorView& matrix : program.trunk_matrices()) {
    ModelInfo::Format& format = by_type[matrix.type];
    format.type = chimere::name(matrix.type);
    ++format.tensors;
    format.bytes += matrix.size_bytes();
  }
  std::vector<ModelInfo::Format> formats;
  for (auto& [type, format] : by_type) formats.push_back(std::move(format));
  std::sort(formats.begin(), formats.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return formats;
}

}  // namespace

ModelInfo describe_model(const ChatModel& chat_model) {
  models::Model& model = *chat_model.model;
  const Program& program = model.executable().program();
  ModelInfo info;
  info.name = model.name();
  info.architecture = model.architecture();
  info.backend = models::backend_name(model.backend());
  info.file_bytes = model.file_bytes();
  info.context_length = model.context_length();
  info.vocabulary = model.n_vocab();
  // A base model has no template: it continues texts and knows no conversation.
  if (const auto& chat_template = chat_model.chat_template) {
    info.chat = true;
    info.thinking = chat_template->supports_thinking_switch();
    info.tools = chat_template->supports_tools() || chat_model.tool_template.has_value();
  }
  for (const TensorView& matrix : program.trunk_matrices()) info.parameters += matrix.elems();
  for (const std::vector<float>& vector : program.trunk_vectors()) info.parameters += vector.size();
  for (const Op& op : program.ops) {
    if (const auto* moe = std::get_if<op::MoeFfn>(&op)) {
      info.experts = moe->n_experts;
      info.experts_used = moe->n_used;
    }
  }
  info.placement.text = model.card_problem();
  if (const auto placed = model.executable().placement()) {
    info.placement = {placed->text,       placed->n_mixtures, placed->n_hosted,    placed->n_layers_in_ram,
                      placed->host_bytes, placed->card_bytes, placed->budget_bytes};
  }
  info.layers = layers_of(program);
  info.formats = formats_of(program);
  return info;
}

}  // namespace chimere::orchestrator
