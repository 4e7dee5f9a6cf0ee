#include "quantizer/tensor_part.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "gguf/value.h"
#include "quantizer/encode.h"
#include "tensor/quantize.h"
#include "text/nearest_word.h"

namespace chimere::quantizer {
namespace {

bool is_any_of(std::string_view part, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), part) != names.end();
}

constexpr std::array kFloats = {DType::F16, DType::BF16, DType::F32};

std::vector<DType> writable_types() {
  const auto encoded = encodable_types();
  std::vector<DType> types(encoded.begin(), encoded.end());
  for (const DType type : kFloats) {
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  std::stable_sort(types.begin(), types.end(),
                   [](DType a, DType b) { return info(a).bits_per_weight() < info(b).bits_per_weight(); });
  return types;
}

}  // namespace

TensorPart part_of(std::string_view name) {
  TensorPart part;
  if (name.starts_with("blk.")) {
    const size_t dot = name.find('.', 4);
    if (dot != std::string_view::npos) {
      const char *from = name.data() + 4, *to = name.data() + dot;
      int layer = -1;
      if (const auto read = std::from_chars(from, to, layer); read.ec == std::errc() && read.ptr == to && layer >= 0) {
        part.layer = layer;
        name.remove_prefix(dot + 1);
      }
    }
  }
  if (name.ends_with(".weight")) name.remove_suffix(7);
  part.part = std::string(name);
  return part;
}

std::string_view why_kept(const TensorView& tensor) {
  const std::string part = part_of(tensor.name).part;
  if (tensor.rows() <= 1) return "a vector";
  if (!tensor.name.ends_with(".weight")) return "no matrix of weights";
  if (part.find("norm") != std::string::npos) return "a norm";
  if (is_any_of(part, {"ffn_gate_inp", "ffn_gate_inp_shexp"})) return "a router";
  if (is_any_of(part, {"ssm_conv1d", "ssm_a", "ssm_d", "shortconv.conv"})) return "part of a recurrence";
  if (is_any_of(part, {"position_embd", "token_types", "rope_freqs", "rope_factors_long", "rope_factors_short"})) {
    return "a small table";
  }
  if (part.starts_with("cls")) return "the head of a classifier";
  if (info(tensor.type).name.starts_with("I") && info(tensor.type).block_elems == 1) return "integers";
  return "";
}

double floor_bits(const TensorPart& part) {
  if (is_any_of(part.part, {"ssm_alpha", "ssm_beta", "ssm_ba", "ssm_x", "ssm_dt"})) return 8;
  if (part.part == "ssm_out") return 4;
  return 0;
}

double read_share(const TensorView& tensor, const gguf::File& file) {
  const TensorPart part = part_of(tensor.name);
  if (part.part == "token_embd" && file.find("output.weight")) {
    return 1.0 / static_cast<double>(std::max<uint64_t>(tensor.ne[1], 1));
  }
  if (tensor.ne[2] <= 1) return 1;
  const auto arch = file.metadata().get_string("general.architecture");
  if (!arch) return 1;
  const auto used = file.metadata().get_int(std::string(*arch) + ".expert_used_count", 1, 1 << 20);
  return used ? std::min(1.0, static_cast<double>(*used) / static_cast<double>(tensor.ne[2])) : 1.0;
}

std::vector<DType> possible_types(const TensorView& tensor) {
  std::vector<DType> types;
  for (const DType type : writable_types()) {
    if (tensor.ne[0] % static_cast<uint64_t>(info(type).block_elems) == 0) types.push_back(type);
  }
  return types;
}

DType nearest_possible(const TensorView& tensor, DType wanted) {
  const std::vector<DType> types = possible_types(tensor);
  if (std::find(types.begin(), types.end(), wanted) != types.end()) return wanted;
  for (const DType type : types) {
    if (info(type).bits_per_weight() >= info(wanted).bits_per_weight()) return type;
  }
  return DType::F32;
}

Result<DType> writable_type(std::string_view text) {
  std::vector<std::string> names;
  const auto found = dtype_from_name(text);
  for (const DType type : writable_types()) {
    if (found == type) return type;
    names.emplace_back(name(type));
  }
  std::string upper(text.substr(0, 64)), list;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
  const std::string near = nearest_word(upper, names);
  return Error{Code::invalid_argument, "type " + gguf::quoted(text.substr(0, 64)) + " cannot be written" +
                                           (near.empty() ? "" : "; did you mean " + near + "?") + " The types are " +
                                           list};
}

uint64_t bytes_as(const TensorView& tensor, DType type) { return row_bytes(type, tensor.ne[0]) * tensor.rows(); }

}  // namespace chimere::quantizer
