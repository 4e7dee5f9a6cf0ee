// grammar_bench.cpp  What masks cost: documents are read token by token under their grammar, and every mask is timed.
//
//   grammar_bench MODEL.gguf [TOKENS [MILLISECONDS]]
//
// The file needs a byte-level vocabulary alone. A larger number of TOKENS than it has is reached with pairs of its
// tokens: large vocabularies are made of such. With the time that the model takes for a token, costs are given as a
// share of it. "First" is a grammar that nobody used before, masks included; "again" is the same grammar in the next
// request. Times are those of the thread, so that a busy machine does not spoil them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gguf/gguf.h"
#include "grammar/constraint.h"
#include "grammar/gbnf.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "tokenizer/tokenizer.h"

using namespace chimere;
using namespace chimere::grammar;

namespace {

// Of this thread alone.
double microseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}
double microseconds(double from) { return microseconds_now() - from; }

struct Case {
  const char* name;
  char kind;  // s: schema, g: GBNF, r: regular expression, o: any object
  std::string grammar;
  std::string document;
};

std::string long_text() {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "The quick brown fox says \\\"hello\\\" to the lazy dog, twice. ";
  return text;
}

std::vector<Case> cases() {
  std::string rows, row = R"({"id": 17, "name": "Ada Lovelace", "email": "ada@example.com", )"
                          R"("score": 0.75, "tags": ["a", "bc"]})";
  for (int i = 0; i < 20; ++i) rows += (i ? ", " : "") + row;
  const std::string item =
      R"({"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string","maxLength":80},
      "email":{"type":"string","format":"email"},"score":{"type":"number","minimum":0,"maximum":1},
      "tags":{"type":"array","items":{"type":"string"}}},"required":["id","name","email","score","tags"],"additionalProperties":false})";
  return {
      {"json_object", 'o', "", "{\"text\": \"" + long_text() + "\", \"list\": [" + rows + "]}"},
      {"schema, one long string", 's',
       R"({"type":"object","properties":{"text":{"type":"string"}},"required":["text"]})",
       "{\"text\": \"" + long_text() + "\"}"},
      {"schema, maxLength 4000", 's',
       R"({"type":"object","properties":{"text":{"type":"string","maxLength":4000}},"required":["text"]})",
       "{\"text\": \"" + long_text() + "\"}"},
      {"schema, 20 records", 's', R"({"type":"array","items":)" + item + "}", "[" + rows + "]"},
      {"GBNF, arithmetic", 'g',
       "root ::= sum\nsum ::= term ((\"+\" | \"-\") term)*\nterm ::= [0-9]{1,3} | \"(\" sum \")\"",
       "(1+22+(333-4))+(5-(6+(7-8)))-99+100-(1+(2-(3+(4-5))))"},
      {"regex, words", 'r', "([a-z]+ ){3,200}[a-z]+\\.", "the quick brown fox jumps over the lazy dog and runs away."},
  };
}

// Pairs of tokens whose bytes are no token yet.
gguf::Metadata with_more_tokens(gguf::Metadata metadata, size_t wanted) {
  auto written = metadata.get_strings("tokenizer.ggml.tokens");
  if (!written || written->size() >= wanted) return metadata;
  std::vector<std::string> tokens(written->begin(), written->end());
  const size_t n = tokens.size();
  std::set<std::string> known(tokens.begin(), tokens.end());
  std::vector<int64_t> types(n, 1);
  if (const auto given = metadata.get_ints("tokenizer.ggml.token_type", 0, 6))
    types.assign(given->begin(), given->end());
  std::mt19937 random(1);
  while (tokens.size() < wanted) {
    const size_t a = random() % n, b = random() % n;
    std::string pair = tokens[a] + tokens[b];
    if (types[a] != 1 || types[b] != 1 || pair.size() > 24 || !known.insert(pair).second) continue;
    tokens.push_back(std::move(pair));
  }
  types.resize(tokens.size(), 1);
  metadata.set("tokenizer.ggml.tokens", {.type = gguf::ValueType::string, .is_array = true, .data = tokens});
  metadata.set("tokenizer.ggml.token_type", {.type = gguf::ValueType::i32, .is_array = true, .data = types});
  return metadata;
}

Result<ExprId> parse(const Case& c, Grammar& grammar) {
  switch (c.kind) {
    case 's': return parse_schema(c.grammar, grammar);
    case 'g': return parse_gbnf(c.grammar, grammar);
    case 'r': return parse_regex(c.grammar, grammar);
    default: return any_object(grammar);
  }
}

struct Times {
  double mean = 0, median = 0, p99 = 0, most = 0;  // microseconds a token, mask() and accept() together
};

// Nothing when the document does not fit, which would be a mistake of ours.
bool read(const std::shared_ptr<const TokenGrammar>& grammar, const std::vector<int32_t>& ids, Times& times) {
  GrammarConstraint constraint(grammar);
  std::vector<double> each;
  for (const int32_t id : ids) {
    const auto start = microseconds_now();
    const auto mask = constraint.mask();
    const bool allowed = (mask[static_cast<size_t>(id) / 64] >> (id % 64)) & 1;
    constraint.accept(id);
    each.push_back(microseconds(start));
    if (!allowed) return false;
  }
  for (const double t : each) times.mean += t / static_cast<double>(each.size());
  std::sort(each.begin(), each.end());
  times.median = each[each.size() / 2];
  times.p99 = each[each.size() * 99 / 100];
  times.most = each.back();
  return constraint.may_end();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: grammar_bench MODEL.gguf [TOKENS [MILLISECONDS]]\n");
    return 2;
  }
  const size_t n_tokens = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0;
  const double decode_us = argc > 3 ? 1000 * std::atof(argv[3]) : 0;
  auto file = gguf::File::open(argv[1]);
  if (!file) {
    std::fprintf(stderr, "%s\n", file.error().message.c_str());
    return 1;
  }
  auto tokenizer = Tokenizer::from_metadata(with_more_tokens(file->metadata(), n_tokens));
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 1;
  }
  auto start = microseconds_now();
  const auto vocabulary = std::make_shared<const Vocabulary>(*tokenizer, tokenizer->n_vocab());
  std::printf("%d tokens, prepared in %.0f ms; %u nodes, %u of them for tokens that are not plain\n",
              tokenizer->n_vocab(), microseconds(start) / 1000, vocabulary->all().size(),
              vocabulary->not_plain().size());
  std::printf("%-26s %6s %8s | %-33s | %s\n", "", "tokens", "compile", "first: mean median p99 most, us", "again");
  for (const Case& c : cases()) {
    start = microseconds_now();
    Grammar grammar;
    auto root = parse(c, grammar);
    if (!root) {
      std::fprintf(stderr, "%s: %s\n", c.name, root.error().message.c_str());
      return 1;
    }
    grammar.root = grammar.add_rule("root");
    grammar.define(grammar.root, *root);
    auto compiled = TokenGrammar::create(grammar, vocabulary);
    if (!compiled) {
      std::fprintf(stderr, "%s: %s\n", c.name, compiled.error().message.c_str());
      return 1;
    }
    const double compile_us = microseconds(start);
    const std::vector<int32_t> ids = tokenizer->encode(c.document, EncodeMode::plain, false);
    Times first, again;
    if (!read(*compiled, ids, first) || !read(*compiled, ids, again)) {
      std::fprintf(stderr, "%s: the document does not fit\n", c.name);
      return 1;
    }
    std::printf("%-26s %6zu %5.1f ms | %7.1f %7.1f %8.1f %8.1f | %6.1f %6.1f %7.1f %7.1f", c.name, ids.size(),
                compile_us / 1000, first.mean, first.median, first.p99, first.most, again.mean, again.median, again.p99,
                again.most);
    if (decode_us > 0) std::printf(" | %.2f %% / %.2f %%", 100 * first.mean / decode_us, 100 * again.mean / decode_us);
    std::printf("\n");
  }
  return 0;
}
