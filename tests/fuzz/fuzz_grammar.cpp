// fuzz_grammar.cpp  libFuzzer target: the first byte says what the rest is (JSON schema, GBNF, regular expression);
// what compiles is then walked with tokens of a small vocabulary.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "grammar/gbnf.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "grammar/text_for_test.h"

using namespace chimere;
using namespace chimere::grammar;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  Grammar grammar;
  const auto parse = [&]() -> Result<ExprId> {
    switch (data[0]) {
      case 's': return parse_schema(text, grammar);
      case 'g': return parse_gbnf(text, grammar);
      default: return parse_regex(text, grammar, {data[0] == 'p', {}});
    }
  };
  const Result<ExprId> root = parse();
  if (!root) return 0;
  grammar.root = grammar.add_rule("root");
  grammar.define(grammar.root, *root);
  const auto compiled = TokenGrammar::create(grammar, vocabulary_for_test());
  if (!compiled) return 0;
  GrammarConstraint constraint(*compiled);
  uint32_t choice = static_cast<uint32_t>(size);
  for (int step = 0; step < 12 && !constraint.is_finished(); ++step) {
    const auto mask = constraint.mask();
    std::vector<int32_t> allowed;
    for (int32_t id = 0; id < static_cast<int32_t>(mask.size() * 64); ++id) {
      if (is_set(mask, id)) allowed.push_back(id);
    }
    if (allowed.empty()) std::abort();
    choice = choice * 1664525u + 1013904223u + data[static_cast<size_t>(step) % size];
    const int32_t id = allowed[choice % allowed.size()];
    if (vocabulary_for_test()->is_end(id)) break;
    constraint.accept(id);
    // An allowed token leaves a way on, or completes the text.
    if (constraint.is_finished() && !constraint.may_end()) std::abort();
  }
  // Where a completion is known, it is one.
  const std::vector<int32_t> rest = constraint.completion(TokenConstraint::Part::all);
  for (const int32_t id : rest) constraint.accept(id);
  if (!rest.empty() && !constraint.may_end()) std::abort();
  return 0;
}
