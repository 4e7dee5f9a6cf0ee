#include "convert/tokenizer_metadata.h"

#include <algorithm>
#include <map>
#include <optional>

#include "convert/json_text.h"
#include "convert/pre_tokenizer_names.h"
#include "gguf/value.h"
#include "tokenizer/vocab.h"

namespace chimere::convert {
namespace {

constexpr char kSpaceMark[] = "\u2581";
constexpr uint64_t kMaxVocab = uint64_t{1} << 20;

Error wrong(const std::string& what) { return Error{Code::corrupt, "tokenizer.json: " + what}; }

// A member that is an object (or array) of the given object, or null.
const Json& member(const Json& object, const char* key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : std::string(); }
bool is_true(const Json& value) { return value.is_boolean() && value.get<bool>(); }

struct AddedToken {
  std::string text;
  bool special = false;
};

// Everything tokenizer.json says about tokens.
struct Tokens {
  std::vector<std::string> texts;  // empty: no token has this id
  std::map<uint64_t, AddedToken> added;
  std::map<std::string, uint64_t, std::less<>> ids;

  std::optional<uint64_t> find(const std::string& text) const {
    const auto found = ids.find(text);
    return found == ids.end() ? std::nullopt : std::optional(found->second);
  }
};

Status put_token(Tokens& tokens, const std::string& text, const Json& id, uint64_t n_vocab) {
  if (!id.is_number_unsigned() || id.get<uint64_t>() >= n_vocab) {
    return wrong("token " + gguf::quoted(text) + ": expected an id below " + std::to_string(n_vocab) +
                 ", the rows of the embedding, found " +
                 id.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 30));
  }
  tokens.texts[id.get<uint64_t>()] = text;
  tokens.ids[text] = id.get<uint64_t>();
  return Ok{};
}

Result<Tokens> read_tokens(const Json& root, uint64_t n_vocab) {
  Tokens tokens;
  tokens.texts.resize(n_vocab);
  const Json& vocab = member(member(root, "model"), "vocab");
  if (vocab.is_array()) {  // a unigram model's: pairs of text and score, whose place is the id
    for (size_t id = 0; id < vocab.size(); ++id) {
      const bool is_pair = vocab[id].is_array() && vocab[id].size() == 2 && vocab[id][0].is_string();
      if (!is_pair || !vocab[id][1].is_number()) return wrong("model.vocab: expected pairs of a token and its score");
      TRY(put_token(tokens, vocab[id][0].get<std::string>(), Json(id), n_vocab));
    }
  } else if (!vocab.is_object()) {
    return wrong("model.vocab: expected an object of tokens and ids");
  } else {
    for (const auto& [text, id] : vocab.items()) TRY(put_token(tokens, text, id, n_vocab));
  }
  for (const Json& entry : member(root, "added_tokens")) {
    const std::string text = text_of(member(entry, "content"));
    TRY(put_token(tokens, text, member(entry, "id"), n_vocab));
    tokens.added[member(entry, "id").get<uint64_t>()] = {text, is_true(member(entry, "special"))};
  }
  return Result<Tokens>{std::move(tokens)};
}

bool looks_special(const std::string& text) {
  const auto between = [&](std::string_view first, std::string_view last) {
    return text.size() >= first.size() + last.size() && text.compare(0, first.size(), first) == 0 &&
           text.compare(text.size() - last.size(), last.size(), last) == 0;
  };
  return text == "<pad>" || text == "<mask>" || between("<|", "|>") || between("<\uff5c", "\uff5c>");
}

using tokenizer::TokenType;

void set_list(gguf::Metadata& m, const char* key, gguf::ValueType type, decltype(gguf::Value::data) data) {
  m.set(key, {type, true, std::move(data)});
}

// Texts and types; `normal` gives text and type of a token that was not added.
template <class Normal>
void set_tokens(gguf::Metadata& m, const Tokens& tokens, Normal normal) {
  std::vector<std::string> texts;
  std::vector<int64_t> types;
  for (uint64_t id = 0; id < tokens.texts.size(); ++id) {
    std::string text = tokens.texts[id];
    TokenType type = TokenType::normal;
    const auto added = tokens.added.find(id);
    if (added != tokens.added.end()) {
      type = added->second.special || looks_special(text) ? TokenType::control : TokenType::user_defined;
    } else if (tokens.find(text) != std::optional(id)) {
      text = "[PAD" + std::to_string(id) + "]";
      type = TokenType::unused;
    } else {
      normal(text, type);
    }
    texts.push_back(std::move(text));
    types.push_back(static_cast<int64_t>(type));
  }
  set_list(m, "tokenizer.ggml.tokens", gguf::ValueType::string, std::move(texts));
  set_list(m, "tokenizer.ggml.token_type", gguf::ValueType::i32, std::move(types));
}

// A merge as the pair of its parts: ["a", "b"] or "a b".
Result<std::pair<std::string, std::string>> read_merge(const Json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  }
  const std::string text = text_of(merge);
  const size_t space = text.empty() ? std::string::npos : text.find(' ', 1);
  if (space == std::string::npos) return wrong("model.merges: expected pairs of tokens");
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

// A space divides the two parts, so one inside a part is written as the byte alphabet does.
std::string merge_part(std::string part) {
  for (size_t at = part.find(' '); at != std::string::npos; at = part.find(' ', at)) part.replace(at, 1, "\u0120");
  return part;
}

Status read_splitting(const Json& step, Splitting& out) {
  const std::string type = text_of(member(step, "type"));
  if (type == "Sequence") {
    for (const Json& inner : member(step, "pretokenizers")) TRY(read_splitting(inner, out));
    return Ok{};
  }
  if (type == "ByteLevel") {
    if (is_true(member(step, "use_regex")) || member(step, "use_regex").is_null()) out.steps.push_back("<gpt2>");
    return Ok{};
  }
  if (type == "Digits" && is_true(member(step, "individual_digits"))) {
    out.steps.push_back("<digits>");
  } else if (type == "Punctuation") {
    out.steps.push_back("<punctuation>");
  } else if (type == "Split") {
    const Json& pattern = member(step, "pattern");
    out.steps.push_back(text_of(member(pattern, "Regex")) + text_of(member(pattern, "String")));
  } else {
    return Error{Code::unsupported, "tokenizer.json: pre_tokenizer: a step of type " + gguf::quoted(type)};
  }
  return Ok{};
}

bool normalises_nfc(const Json& normalizer) {
  if (text_of(member(normalizer, "type")) == "NFC") return true;
  for (const Json& inner : member(normalizer, "normalizers")) {
    if (normalises_nfc(inner)) return true;
  }
  return false;
}

Status add_byte_level(const Json& root, const Tokens& tokens, gguf::Metadata& m) {
  const Json& model = member(root, "model");
  Splitting splitting;
  TRY(read_splitting(member(root, "pre_tokenizer"), splitting));
  splitting.ignore_merges = is_true(member(model, "ignore_merges"));
  splitting.nfc = normalises_nfc(member(root, "normalizer"));
  TRY_ASSIGN(std::string pre, pre_tokenizer_name(splitting));
  m.set_string("tokenizer.ggml.model", "gpt2");
  m.set_string("tokenizer.ggml.pre", std::move(pre));
  set_tokens(m, tokens, [](std::string&, TokenType&) {});
  std::vector<std::string> merges;
  for (const Json& entry : member(model, "merges")) {
    TRY_ASSIGN(const auto merge, read_merge(entry));
    merges.push_back(merge_part(merge.first) + " " + merge_part(merge.second));
  }
  set_list(m, "tokenizer.ggml.merges", gguf::ValueType::string, std::move(merges));
  return Ok{};
}

// SentencePiece merges the pair whose token has the best score; the rank of a token's first merge orders them the same.
Status add_sentence_piece(const Json& root, const Tokens& tokens, gguf::Metadata& m) {
  std::vector<double> scores(tokens.texts.size(), 0.0);
  double rank = 0;
  for (const Json& entry : member(member(root, "model"), "merges")) {
    TRY_ASSIGN(const auto merge, read_merge(entry));
    const std::optional<uint64_t> id = tokens.find(merge.first + merge.second);
    if (!id) return wrong("model.merges: " + gguf::quoted(merge.first + merge.second) + " is not a token");
    if (scores[*id] == 0.0) scores[*id] = -(rank += 1);
  }
  const std::string unknown = text_of(member(member(root, "model"), "unk_token"));
  m.set_string("tokenizer.ggml.model", "llama");
  m.set_string("tokenizer.ggml.pre", "default");
  set_tokens(m, tokens, [](const std::string& text, TokenType& type) {
    if (tokenizer::byte_token_value(text) >= 0) type = TokenType::byte;
  });
  if (const std::optional<uint64_t> id = tokens.find(unknown); id && !unknown.empty()) {
    auto types = m.get_ints("tokenizer.ggml.token_type", 0, 6);
    (*types)[*id] = static_cast<int64_t>(TokenType::unknown);
    set_list(m, "tokenizer.ggml.token_type", gguf::ValueType::i32, std::move(*types));
  }
  set_list(m, "tokenizer.ggml.scores", gguf::ValueType::f32, std::move(scores));
  const Json& before = member(root, "normalizer");
  const std::string described = before.dump(-1, ' ', true, Json::error_handler_t::replace) +
                                member(root, "pre_tokenizer").dump(-1, ' ', true, Json::error_handler_t::replace);
  // A Prepend step of the normalizer, or Metaspace with a prefix, puts one space before the text.
  const bool prefix = described.find("\"Prepend\"") != std::string::npos ||
                      described.find("\"prepend_scheme\":\"first\"") != std::string::npos ||
                      described.find("\"prepend_scheme\":\"always\"") != std::string::npos;
  m.set_bool("tokenizer.ggml.add_space_prefix", prefix);
  return Ok{};
}

Status add_word_piece(const Json& root, const Tokens& tokens, gguf::Metadata& m) {
  const std::string continued = text_of(member(member(root, "model"), "continuing_subword_prefix"));
  m.set_string("tokenizer.ggml.model", "bert");
  m.set_string("tokenizer.ggml.pre", "bert-bge");
  m.set_int("tokenizer.ggml.token_type_count", gguf::ValueType::u32, 2);
  set_tokens(m, tokens, [&](std::string& text, TokenType&) {
    if (!continued.empty() && text.compare(0, continued.size(), continued) == 0) {
      text.erase(0, continued.size());
    } else {
      text = kSpaceMark + text;
    }
  });
  const Json& lowercase = member(member(root, "normalizer"), "lowercase");
  m.set_bool("tokenizer.ggml.normalizer.lowercase", !lowercase.is_boolean() || lowercase.get<bool>());
  return Ok{};
}

// The compiled normaliser of SentencePiece, wherever it stands among the steps.
const Json& find_charsmap(const Json& normalizer) {
  const Json& here = member(normalizer, "precompiled_charsmap");
  if (!here.is_null()) return here;
  for (const Json& inner : member(normalizer, "normalizers")) {
    if (const Json& found = find_charsmap(inner); !found.is_null()) return found;
  }
  return here;
}

Result<std::vector<uint64_t>> decode_base64(const std::string& text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<uint64_t> bytes;
  uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : text.substr(0, text.find('='))) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return wrong("normalizer: precompiled_charsmap is not base64");
    bits = (bits << 6 | static_cast<uint32_t>(digit)) & 0xFFFFFF;
    n_bits += 6;
    if (n_bits >= 8) bytes.push_back(bits >> (n_bits -= 8) & 255);
  }
  return Result<std::vector<uint64_t>>{std::move(bytes)};
}

Status add_unigram(const Json& root, const Json& model_config, const Tokens& tokens, gguf::Metadata& m) {
  const Json& model = member(root, "model");
  const Json& unknown = member(model, "unk_id");
  const std::string unknown_text = unknown.is_number_unsigned() && unknown.get<uint64_t>() < tokens.texts.size()
                                       ? tokens.texts[unknown.get<uint64_t>()]
                                       : "";
  if (unknown_text.empty()) return wrong("model.unk_id: expected the id of a token");
  std::vector<double> scores(tokens.texts.size(), 0.0);
  const Json& vocab = member(model, "vocab");
  for (size_t id = 0; id < vocab.size(); ++id) scores[id] = vocab[id][1].get<double>();
  m.set_string("tokenizer.ggml.model", "t5");
  m.set_string("tokenizer.ggml.pre", "default");
  set_tokens(m, tokens, [](const std::string&, TokenType&) {});
  auto types = m.get_ints("tokenizer.ggml.token_type", 0, 6);
  (*types)[unknown.get<uint64_t>()] = static_cast<int64_t>(TokenType::unknown);
  set_list(m, "tokenizer.ggml.token_type", gguf::ValueType::i32, std::move(*types));
  set_list(m, "tokenizer.ggml.scores", gguf::ValueType::f32, std::move(scores));
  m.set_int("tokenizer.ggml.unknown_token_id", gguf::ValueType::u32, unknown.get<int64_t>());
  if (const Json& kinds = member(model_config, "type_vocab_size"); kinds.is_number_unsigned()) {
    m.set_int("tokenizer.ggml.token_type_count", gguf::ValueType::u32, kinds.get<int64_t>());
  }
  if (const Json& charsmap = find_charsmap(member(root, "normalizer")); charsmap.is_string()) {
    TRY_ASSIGN(std::vector<uint64_t> bytes, decode_base64(charsmap.get<std::string>()));
    set_list(m, "tokenizer.ggml.precompiled_charsmap", gguf::ValueType::u8, std::move(bytes));
  }
  m.set_bool("tokenizer.ggml.add_space_prefix", true);
  m.set_bool("tokenizer.ggml.remove_extra_whitespaces", true);
  return Ok{};
}

// "<s>", or an object with "content".
std::string token_text(const Json& value) {
  return value.is_object() ? text_of(member(value, "content")) : text_of(value);
}

void set_special_ids(const Json& config, const Json& model_config, const Tokens& tokens, gguf::Metadata& m) {
  struct Special {
    const char* name;  // in the file: NAME_token_id
    const char* key;   // in tokenizer_config.json: KEY_token
  };
  constexpr Special kSpecials[] = {{"bos", "bos"},     {"eos", "eos"}, {"unknown", "unk"}, {"seperator", "sep"},
                                   {"padding", "pad"}, {"cls", "cls"}, {"mask", "mask"}};
  for (const Special& s : kSpecials) {
    const Json& named = member(config, (std::string(s.key) + "_token").c_str());
    std::optional<uint64_t> id = tokens.find(token_text(named));
    if (!id) {
      const std::string key = std::string(s.key) + "_token_id";
      const Json& text_model = member(model_config, "text_config");
      const Json* number = &member(text_model, key.c_str());
      if (number->is_null()) number = &member(model_config, key.c_str());
      if (number->is_array() && !number->empty()) number = &(*number)[0];
      if (number->is_number_unsigned()) id = number->get<uint64_t>();
    }
    if (!id || *id >= tokens.texts.size()) continue;
    m.set_int("tokenizer.ggml." + std::string(s.name) + "_token_id", gguf::ValueType::u32, static_cast<int64_t>(*id));
  }
}

// Whether the tokenizer puts its first token before a text: said, or done by its post-processor.
std::optional<bool> adds_bos(const Json& root, const Json& config) {
  if (const Json& said = member(config, "add_bos_token"); said.is_boolean()) return said.get<bool>();
  const std::string bos = token_text(member(config, "bos_token"));
  std::vector<const Json*> steps = {&member(root, "post_processor")};
  for (const Json& inner : member(*steps.front(), "processors")) steps.push_back(&inner);
  for (const Json* step : steps) {
    const Json& single = member(*step, "single");
    if (text_of(member(*step, "type")) != "TemplateProcessing" || !single.is_array() || single.empty()) continue;
    return !bos.empty() && text_of(member(member(single[0], "SpecialToken"), "id")) == bos;
  }
  return std::nullopt;
}

void set_chat_templates(const std::string& file, const Json& config, gguf::Metadata& m) {
  const Json& listed = member(config, "chat_template");
  if (!file.empty()) {
    m.set_string("tokenizer.chat_template", file);
  } else if (listed.is_string()) {
    m.set_string("tokenizer.chat_template", listed.get<std::string>());
  }
  if (!listed.is_array()) return;
  std::vector<std::string> names;
  for (const Json& entry : listed) {
    const std::string name = text_of(member(entry, "name")), text = text_of(member(entry, "template"));
    if (name == "default" && file.empty()) m.set_string("tokenizer.chat_template", text);
    if (name.empty() || name == "default") continue;
    names.push_back(name);
    m.set_string("tokenizer.chat_template." + name, text);
  }
  if (!names.empty()) set_list(m, "tokenizer.chat_templates", gguf::ValueType::string, std::move(names));
}

void set_sampling(const Json& generation, gguf::Metadata& m) {
  if (member(generation, "do_sample").is_boolean() && !is_true(member(generation, "do_sample"))) return;
  const auto number = [&](const char* key, const char* name, double most) {
    const Json& value = member(generation, key);
    if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= most)) return;
    m.set_float("general.sampling." + std::string(name), value.get<double>());
  };
  number("temperature", "temp", 100.0);
  number("top_p", "top_p", 1.0);
  number("min_p", "min_p", 1.0);
  number("repetition_penalty", "penalty_repeat", 100.0);
  const Json& top_k = member(generation, "top_k");
  if (top_k.is_number_unsigned() && top_k.get<uint64_t>() < (1u << 20)) {
    m.set_int("general.sampling.top_k", gguf::ValueType::i32, top_k.get<int64_t>());
  }
}

Result<std::string> read_if_there(const std::string& path) {
  auto text = read_text(path);
  if (!text && text.error().code == Code::not_found) return std::string();
  return text;
}

Result<Json> parse_if_there(const std::string& text, const char* label) {
  return text.empty() ? Result<Json>{Json()} : parse_json(text, label);
}

}  // namespace

Result<TokenizerFiles> read_tokenizer_files(const std::string& folder) {
  TokenizerFiles files;
  TRY_ASSIGN(files.tokenizer, read_text(folder + "/tokenizer.json"));
  TRY_ASSIGN(files.config, read_if_there(folder + "/tokenizer_config.json"));
  TRY_ASSIGN(files.chat_template, read_if_there(folder + "/chat_template.jinja"));
  TRY_ASSIGN(files.model_config, read_if_there(folder + "/config.json"));
  TRY_ASSIGN(files.generation_config, read_if_there(folder + "/generation_config.json"));
  return Result<TokenizerFiles>{std::move(files)};
}

Status add_tokenizer(const TokenizerFiles& files, uint64_t n_vocab, gguf::Metadata& metadata) {
  if (n_vocab == 0 || n_vocab > kMaxVocab) {
    return Error{Code::corrupt,
                 "the embedding has " + std::to_string(n_vocab) + " rows, expected 1 to " + std::to_string(kMaxVocab)};
  }
  TRY_ASSIGN(const Json root, parse_json(files.tokenizer, "tokenizer.json"));
  TRY_ASSIGN(const Json config, parse_if_there(files.config, "tokenizer_config.json"));
  TRY_ASSIGN(const Json model_config, parse_if_there(files.model_config, "config.json"));
  TRY_ASSIGN(const Json generation, parse_if_there(files.generation_config, "generation_config.json"));
  TRY_ASSIGN(const Tokens tokens, read_tokens(root, n_vocab));
  const Json& model = member(root, "model");
  const std::string type = text_of(member(model, "type"));
  if (type == "WordPiece") {
    TRY(add_word_piece(root, tokens, metadata));
  } else if (type == "Unigram") {
    if (!member(model, "vocab").is_array()) return wrong("model.vocab: expected pairs of a token and its score");
    TRY(add_unigram(root, model_config, tokens, metadata));
  } else if (type != "BPE" && !(type.empty() && member(model, "merges").is_array())) {
    return Error{Code::unsupported,
                 "tokenizer.json: model.type: expected BPE, Unigram or WordPiece, found " + gguf::quoted(type)};
  } else if (is_true(member(model, "byte_fallback"))) {
    TRY(add_sentence_piece(root, tokens, metadata));
  } else {
    TRY(add_byte_level(root, tokens, metadata));
  }
  set_special_ids(config, model_config, tokens, metadata);
  if (const std::optional<bool> bos = adds_bos(root, config); bos && type != "WordPiece") {
    metadata.set_bool("tokenizer.ggml.add_bos_token", *bos);
  }
  if (const Json& eos = member(config, "add_eos_token"); eos.is_boolean()) {
    metadata.set_bool("tokenizer.ggml.add_eos_token", eos.get<bool>());
  }
  set_chat_templates(files.chat_template, config, metadata);
  set_sampling(generation, metadata);
  return Ok{};
}

}  // namespace chimere::convert
