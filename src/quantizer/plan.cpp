#include "quantizer/plan.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "gguf/shard.h"
#include "gguf/value.h"

namespace chimere::quantizer {
namespace {

constexpr size_t kMaxRuleBytes = 256, kMaxRulesBytes = size_t{1} << 20, kMaxRules = 4096;

uint64_t padded_bytes(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

// Made for models that were trained in them: as a rounding of other weights they are never the better choice.
bool is_trained_format(DType type) {
  return type == DType::TQ1_0 || type == DType::TQ2_0 || type == DType::Q1_0 || type == DType::Q2_0;
}

std::vector<DType> types_to_choose_from(const TensorView& tensor, const TensorPart& part) {
  std::vector<DType> types;
  const double own = info(tensor.type).bits_per_weight(), least = floor_bits(part);
  for (const DType type : possible_types(tensor)) {
    const double bits = info(type).bits_per_weight();
    if (bits < own && bits >= least && !is_trained_format(type)) types.push_back(type);
  }
  types.push_back(tensor.type);
  return types;
}

std::string without_spaces(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t\r"), to = text.find_last_not_of(" \t\r");
  return from == std::string_view::npos ? "" : std::string(text.substr(from, to - from + 1));
}

}  // namespace

Result<Rule> parse_rule(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0 || text.size() > kMaxRuleBytes) {
    return Error{Code::invalid_argument, "expected REGEX=TYPE of at most " + std::to_string(kMaxRuleBytes) +
                                             " bytes, found " + gguf::quoted(text.substr(0, kMaxRuleBytes))};
  }
  TRY_ASSIGN(const DType type, writable_type(without_spaces(text.substr(equals + 1))));
  auto pattern = grammar::Pattern::parse(without_spaces(text.substr(0, equals)));
  if (!pattern) {
    return Error{Code::invalid_argument, "the expression of " + gguf::quoted(text) + ": " + pattern.error().message};
  }
  return Rule{std::string(text), std::move(*pattern), type};
}

Result<std::vector<Rule>> parse_rules(std::string_view text, const std::string& label) {
  std::vector<Rule> rules;
  if (text.size() > kMaxRulesBytes) {
    return Error{Code::invalid_argument,
                 label + ": expected at most 1 MiB of rules, found " + std::to_string(text.size()) + " bytes"};
  }
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line = without_spaces(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.front() == '#') continue;
    auto rule = parse_rule(line);
    if (!rule) {
      return Error{rule.error().code, label + ", line " + std::to_string(number) + ": " + rule.error().message};
    }
    if (rules.size() == kMaxRules) {
      return Error{Code::invalid_argument, label + ": expected at most " + std::to_string(kMaxRules) + " rules"};
    }
    rules.push_back(std::move(*rule));
  }
  return Result<std::vector<Rule>>{std::move(rules)};
}

Result<std::vector<Rule>> read_rules(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Code::io, path + ": can not be opened"};
  std::string text(kMaxRulesBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return parse_rules(text, path);
}

uint64_t Plan::tensor_bytes() const {
  uint64_t bytes = 0;
  for (const PlanItem& item : items) bytes += item.choice().bytes;
  return bytes;
}

double Plan::read_bytes() const {
  double bytes = 0;
  for (const PlanItem& item : items) bytes += item.share * static_cast<double>(item.choice().bytes);
  return bytes;
}

double Plan::loss() const {
  double loss = 0;
  for (const PlanItem& item : items) loss += item.choice().loss;
  return loss;
}

double Plan::loss_half_width() const {
  double squares = 0;
  for (const PlanItem& item : items) squares += item.choice().half_width * item.choice().half_width;
  return std::sqrt(squares);
}

double Plan::bits_per_weight() const {
  uint64_t elems = 0, bytes = 0;
  for (const PlanItem& item : items) {
    elems += item.tensor->elems();
    bytes += bytes_as(*item.tensor, item.choice().type);
  }
  return elems ? 8.0 * static_cast<double>(bytes) / static_cast<double>(elems) : 0;
}

Result<Plan> plan_for(const gguf::File& file, const std::vector<Rule>& rules) {
  TRY_ASSIGN(const uint64_t alignment, gguf::alignment_of(file.metadata()));
  Plan plan;
  plan.alignment = alignment;
  for (const TensorView& tensor : file.tensors()) {
    PlanItem item;
    item.tensor = &tensor;
    item.part = part_of(tensor.name);
    item.share = read_share(tensor, file);
    item.why = why_kept(tensor);
    std::vector<DType> types = {tensor.type};
    if (item.why.empty()) {
      const auto rule =
          std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return r.pattern.is_in(tensor.name); });
      if (rule != rules.end()) {
        types = {nearest_possible(tensor, rule->type)};
        item.why = "asked for: " + rule->text;
      } else {
        types = types_to_choose_from(tensor, item.part);
        if (types.size() == 1) item.why = "its rows fill no block of a smaller type";
      }
    }
    for (const DType type : types) item.choices.push_back({type, padded_bytes(bytes_as(tensor, type), alignment), 0});
    item.chosen = item.choices.size() - 1;
    plan.items.push_back(std::move(item));
  }
  if (plan.items.empty()) return Error{Code::invalid_argument, file.path() + ": has no tensors to quantise"};
  return Result<Plan>{std::move(plan)};
}

void choose_everywhere(Plan& plan, DType type) {
  for (PlanItem& item : plan.items) {
    if (!item.why.empty()) continue;
    const DType nearest = nearest_possible(*item.tensor, type);
    const double wanted = info(nearest).bits_per_weight();
    // No plan comes to these types by itself; here one is asked for.
    if (is_trained_format(nearest) && wanted >= floor_bits(item.part)) {
      const auto larger = std::find_if(item.choices.begin(), item.choices.end(), [&](const Choice& c) {
        return c.type == nearest || info(c.type).bits_per_weight() > wanted;
      });
      if (larger != item.choices.end() && larger->type != nearest) {
        item.choices.insert(larger, {nearest, padded_bytes(bytes_as(*item.tensor, nearest), plan.alignment), 0});
      }
    }
    item.chosen = item.choices.size() - 1;
    // The type itself, or else the smallest choice of no fewer bits.
    for (size_t k = item.choices.size(); k-- > 0;) {
      if (info(item.choices[k].type).bits_per_weight() >= wanted) item.chosen = k;
    }
    for (size_t k = 0; k < item.choices.size(); ++k) {
      if (item.choices[k].type == nearest) item.chosen = k;
    }
  }
}

std::string llama_command(const Plan& plan, const std::string& in, const std::string& out, const std::string& imatrix) {
  std::map<DType, uint64_t> weights;
  std::string text = "llama-quantize";
  if (!imatrix.empty()) text += " --imatrix " + imatrix;
  for (const PlanItem& item : plan.items) {
    const DType type = item.choice().type;
    if (item.tensor->rows() > 1) weights[type] += item.tensor->elems();
    if (item.part.part == "token_embd") {
      text += " --token-embedding-type " + std::string(name(type));
    } else if (item.part.part == "output") {
      text += " --output-tensor-type " + std::string(name(type));
    } else if (why_kept(*item.tensor).empty()) {
      std::string pattern;
      for (const char c : item.tensor->name) pattern += c == '.' ? std::string("\\.") : std::string(1, c);
      text += " --tensor-type '^" + pattern + "$=" + std::string(name(type)) + "'";
    }
  }
  DType most = DType::F16;
  uint64_t n = 0;
  for (const auto& [type, elems] : weights) {
    if (elems > n) {
      n = elems;
      most = type;
    }
  }
  // The base type is given by the name of a mix, which ends in a letter for some types.
  std::string base(name(most));
  if (most == DType::Q3_K || most == DType::Q4_K || most == DType::Q5_K) base += "_M";
  return text + " " + in + " " + out + " " + base;
}

}  // namespace chimere::quantizer
