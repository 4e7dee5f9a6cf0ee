// special_tokens.cpp  Special ids, begin and end rules, and the set of tokens that end a generation.
//
// Files often leave ids out, so well-known texts fill the gaps. A token that ends a generation counts as control
// whatever its declared type: user text must not be able to produce it.
#include <array>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "tokenizer/pretokenizer.h"
#include "tokenizer/vocab.h"

namespace chimere::tokenizer {
namespace {

constexpr std::array<std::string_view, 22> kEndTexts = {"<|eot_id|>",
                                                        "<|im_end|>",
                                                        "<|end|>",
                                                        "<|return|>",
                                                        "<|call|>",
                                                        "<|flush|>",
                                                        "<|calls|>",
                                                        "<end_of_turn>",
                                                        "<|endoftext|>",
                                                        "</s>",
                                                        "<|eom_id|>",
                                                        "<EOT>",
                                                        "_<EOT>",
                                                        "[EOT]",
                                                        "[EOS]",
                                                        "<|end_of_text|>",
                                                        "<end_of_utterance>",
                                                        "<eos>",
                                                        "<turn|>",
                                                        "<|tool_response>",
                                                        "<｜end▁of▁sentence｜>",
                                                        "[e~["};

// In order of preference.
constexpr std::string_view kTurnEnds[] = {"<|eot_id|>",    "<|im_end|>",    "<|end|>",
                                          "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>"};

struct FimId {
  int32_t SpecialIds::*id;
  std::array<std::string_view, 2> keys;   // after "tokenizer.ggml."; the second is an older spelling
  std::array<std::string_view, 5> texts;  // used when the file has no key
};
constexpr FimId kFimIds[] = {
    {&SpecialIds::fim_pre,
     {"fim_pre_token_id", "prefix_token_id"},
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>"}},
    {&SpecialIds::fim_suf,
     {"fim_suf_token_id", "suffix_token_id"},
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>"}},
    {&SpecialIds::fim_mid,
     {"fim_mid_token_id", "middle_token_id"},
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>"}},
    {&SpecialIds::fim_pad, {"fim_pad_token_id", ""}, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", ""}},
    {&SpecialIds::fim_rep,
     {"fim_rep_token_id", ""},
     {"<|repo_name|>", "<|fim_repo|>", "<fim-repo>", "<reponame>", "<repo_name>"}},
    {&SpecialIds::fim_sep, {"fim_sep_token_id", ""}, {"<|file_sep|>", "<file_sep>", "", "", ""}},
};

}  // namespace

Status Vocab::resolve_special(const gguf::Metadata& metadata, std::span<const std::string> written) {
  const auto id_of_key = [&](std::string_view key) -> int32_t {
    // An id out of range is ignored, not refused: published files have them.
    const Result<int64_t> id = metadata.get_int("tokenizer.ggml." + std::string(key), 0, size() - 1);
    return id ? static_cast<int32_t>(*id) : -1;
  };
  const auto in_range = [&](int32_t id) { return contains(id) ? id : -1; };

  const bool is_bpe = kind == VocabKind::bpe;
  const bool is_spm = kind == VocabKind::spm;
  const bool is_wordpiece = kind == VocabKind::wordpiece;
  const bool is_unigram = kind == VocabKind::unigram;
  const bool default_bos = is_bpe ? PreTokenizer::named(pre)->add_bos : true;
  TRY_ASSIGN(add_bos, metadata.get_bool_or("tokenizer.ggml.add_bos_token", default_bos));
  TRY_ASSIGN(add_eos, metadata.get_bool_or("tokenizer.ggml.add_eos_token", is_wordpiece || is_unigram));
  TRY_ASSIGN(add_space_prefix, metadata.get_bool_or("tokenizer.ggml.add_space_prefix", is_spm || is_unigram));

  ids.bos = id_of_key("bos_token_id");
  ids.eos = id_of_key("eos_token_id");
  ids.eot = id_of_key("eot_token_id");
  ids.eom = id_of_key("eom_token_id");
  ids.unk = id_of_key("unknown_token_id");
  ids.sep = id_of_key("seperator_token_id");
  ids.pad = id_of_key("padding_token_id");
  ids.cls = id_of_key("cls_token_id");
  ids.mask = id_of_key("mask_token_id");
  if (is_spm) {
    if (ids.bos < 0) ids.bos = in_range(1);
    if (ids.eos < 0) ids.eos = in_range(2);
    if (ids.unk < 0) ids.unk = in_range(0);
  } else if (is_wordpiece) {
    if (ids.cls < 0) ids.cls = ids.bos >= 0 ? ids.bos : in_range(101);
    if (ids.sep < 0) ids.sep = ids.eos >= 0 ? ids.eos : in_range(102);
    if (ids.unk < 0) ids.unk = in_range(100);
    if (ids.pad < 0) ids.pad = in_range(0);
    if (ids.mask < 0) ids.mask = in_range(103);
  } else if (is_unigram) {
    if (ids.eos < 0) ids.eos = in_range(1);
    if (ids.unk < 0) ids.unk = in_range(2);
    if (ids.pad < 0) ids.pad = in_range(0);
  } else if (ids.bos < 0 && metadata.contains("tokenizer.ggml.add_bos_token") && add_bos) {
    ids.bos = in_range(11);  // what the first byte-level files meant by leaving it out
  }

  std::unordered_map<std::string_view, int32_t> known;  // texts of the tables above -> id, -1 until found
  for (const std::string_view text : kEndTexts) known.emplace(text, -1);
  for (const std::string_view text : kTurnEnds) known.emplace(text, -1);
  for (const FimId& fim : kFimIds) {
    for (const std::string_view text : fim.texts) known.emplace(text, -1);
  }
  known.erase("");
  for (size_t i = 0; i < written.size(); ++i) {
    const auto found = known.find(written[i]);
    if (found != known.end() && found->second < 0) found->second = static_cast<int32_t>(i);
  }
  const auto id_of_text = [&](std::string_view text) { return text.empty() ? -1 : known.at(text); };

  for (const FimId& fim : kFimIds) {
    for (const std::string_view key : fim.keys) {
      if (ids.*fim.id < 0 && !key.empty()) ids.*fim.id = id_of_key(key);
    }
    for (const std::string_view text : fim.texts) {
      if (ids.*fim.id < 0) ids.*fim.id = id_of_text(text);
    }
  }
  for (const std::string_view text : kTurnEnds) {
    if (ids.eot < 0) ids.eot = id_of_text(text);
  }

  eog.assign(types.size(), false);
  const auto ends = [&](int32_t id) {
    if (id >= 0) eog[id] = true;
  };
  for (const int32_t id : {ids.eos, ids.eot, ids.eom, ids.fim_pad, ids.fim_rep, ids.fim_sep}) ends(id);
  for (const std::string_view text : kEndTexts) ends(id_of_text(text));
  for (int32_t id = 0; id < size(); ++id) {
    // A single character stays what it is: a wrong id in the file must not make a byte impossible to write.
    if (eog[id] && written[id].size() > 2) types[id] = TokenType::control;
  }
  // In these families the token closes one message of a turn, not the turn.
  const auto has = [&](std::string_view text) { return id_of_text(text) >= 0; };
  const auto goes_on = [&](std::string_view text) {
    if (has(text)) eog[id_of_text(text)] = false;
  };
  if ((has("<|return|>") && has("<|call|>")) || (has("<|calls|>") && has("<|flush|>"))) goes_on("<|end|>");
  if (has("<|tool_response>")) goes_on("</s>");
  for (int32_t id = 0; id < size(); ++id) {
    if (eog[id]) eog_ids.push_back(id);
  }

  if (metadata.contains("tokenizer.ggml.suppress_tokens")) {
    TRY_ASSIGN(const std::vector<int64_t> suppressed,
               metadata.get_ints("tokenizer.ggml.suppress_tokens", std::numeric_limits<int32_t>::min(),
                                 std::numeric_limits<int32_t>::max()));
    for (const int64_t id : suppressed) {
      if (contains(static_cast<int32_t>(id))) suppress_ids.push_back(static_cast<int32_t>(id));
    }
  }
  return Ok{};
}

}  // namespace chimere::tokenizer
