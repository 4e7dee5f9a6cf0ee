// tokenize.cpp  chimere tokenize: a JSON string per line in, a JSON array of ids per line out, or the reverse.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "common.h"
#include "gguf/gguf.h"
#include "tokenizer/tokenizer.h"

namespace chimere::apps {
namespace {

struct TokenizeOptions {
  std::string model;
  bool no_special = false;
  bool decode = false;
};

using Json = nlohmann::json;

Error bad_line(size_t line, const std::string& expected) {
  return {Code::invalid_argument, "line " + std::to_string(line) + ": expected " + expected};
}

Result<std::string> convert(const Tokenizer& tokenizer, const TokenizeOptions& o, const std::string& text,
                            size_t line) {
  const Json in = Json::parse(text, nullptr, false);
  if (!o.decode) {
    if (!in.is_string()) return bad_line(line, "a JSON string");
    const EncodeMode mode = o.no_special ? EncodeMode::text : EncodeMode::special;
    return Json(tokenizer.encode(in.get<std::string>(), mode, false)).dump();
  }
  if (!in.is_array()) return bad_line(line, "a JSON array of ids");
  std::vector<int32_t> ids;
  for (const Json& id : in) {
    if (!id.is_number_integer() || id < 0 || id >= tokenizer.n_vocab()) {
      return bad_line(line, "ids from 0 to " + std::to_string(tokenizer.n_vocab() - 1) + ", found " + id.dump());
    }
    ids.push_back(id.get<int32_t>());
  }
  // ASCII: some readers take U+2028 and its like for the end of a line.
  return Json(tokenizer.decode(ids, !o.no_special)).dump(-1, ' ', true);
}

Status run(const TokenizeOptions& o) {
  TRY_ASSIGN(const std::string path, model_path(o.model));
  TRY_ASSIGN(const gguf::File file, gguf::File::open(path));
  TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::from_metadata(file.metadata()));
  std::string text;
  for (size_t line = 1; std::getline(std::cin, text); ++line) {
    if (text.empty()) continue;
    TRY_ASSIGN(const std::string out, convert(tokenizer, o, text, line));
    std::printf("%s\n", out.c_str());
  }
  return Ok{};
}

}  // namespace

void add_tokenize(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "Turn text into token ids and back, line by line");
  command->add_option("--model", options->model, "GGUF file with a vocabulary; the model in the box when absent");
  command->add_flag("--no-special", options->no_special, "read the text of control tokens as plain text");
  command->add_flag("--decode", options->decode, "arrays of ids in, strings out");
  command->footer("Example:  echo '\"Hello\"' | chimere tokenize");
  command->callback([options, &outcome] {
    if (Status s = run(*options); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
