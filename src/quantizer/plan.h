// plan.h  Which type each tensor of a file gets, what it may get, and what that costs.
#pragma once

#include <string>
#include <vector>

#include "gguf/gguf.h"
#include "grammar/pattern.h"
#include "quantizer/tensor_part.h"

namespace chimere::quantizer {

// A person's word on tensors: the first rule whose expression is found in a name decides.
struct Rule {
  std::string text;  // "ffn_down=Q6_K"
  grammar::Pattern pattern;
  DType type;
};

// "REGEX=TYPE". The expression is looked for anywhere in the name; ^ and $ bind it to the ends.
Result<Rule> parse_rule(std::string_view text);
// A file of such lines; blank lines and those that begin with # are skipped. Errors say the line.
Result<std::vector<Rule>> parse_rules(std::string_view text, const std::string& label);
Result<std::vector<Rule>> read_rules(const std::string& path);

struct Choice {
  DType type = DType::F32;
  uint64_t bytes = 0;     // in the file, with padding
  double loss = 0;        // predicted; 0 where nothing was measured
  double half_width = 0;  // of its 95 % interval, as far as that is from rows that were not seen
};

struct PlanItem {
  const TensorView* tensor = nullptr;
  TensorPart part;
  std::string why;              // why there is no choice; empty where there is one
  double share = 1;             // of its bytes that are read for a token
  std::vector<Choice> choices;  // fewest bits first, never empty
  size_t chosen = 0;

  const Choice& choice() const { return choices[chosen]; }
};

struct Plan {
  std::vector<PlanItem> items;  // in file order
  uint64_t alignment = 32;      // of their bytes

  uint64_t tensor_bytes() const;
  double read_bytes() const;  // a token
  double loss() const;
  double loss_half_width() const;  // errors of tensors are independent: squares add up
  double bits_per_weight() const;
};

// Every type a tensor may get. Those that are kept, and those a rule names, have one.
Result<Plan> plan_for(const gguf::File& file, const std::vector<Rule>& rules);

// Gives every tensor that has a choice `type`, or the nearest its rows can be written in.
void choose_everywhere(Plan& plan, DType type);

// The plan as arguments of llama.cpp's quantiser: one --tensor-type for each name, and the type of most weights.
std::string llama_command(const Plan& plan, const std::string& in, const std::string& out, const std::string& imatrix);

}  // namespace chimere::quantizer
