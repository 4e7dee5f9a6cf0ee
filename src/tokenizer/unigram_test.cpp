// The unigram model against an exhaustive search, and its normaliser against the map that its trie was made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tokenizer/charsmap.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab_for_test.h"

namespace chimere::tokenizer {
namespace {

using Ids = std::vector<int32_t>;
using Replacements = std::map<std::string, std::string>;

// A double-array trie of the keys, as charsmap.h draws it: each node gets the first offset that leaves its children in
// free units.
class CharsMapWriter {
 public:
  explicit CharsMapWriter(const Replacements& replacements) {
    for (const auto& [key, value] : replacements) {
      values_[key] = static_cast<uint32_t>(blob_.size());
      blob_ += value + '\0';
    }
    place(0, "");
  }
  std::string blob() const {
    const auto n_bytes = static_cast<uint32_t>(units_.size() * sizeof(uint32_t));
    std::string out(reinterpret_cast<const char*>(&n_bytes), sizeof(n_bytes));
    out.append(reinterpret_cast<const char*>(units_.data()), n_bytes);
    return out + blob_;
  }

 private:
  void place(uint32_t node, const std::string& prefix) {
    std::set<uint8_t> labels;
    for (const auto& [key, value] : values_) {
      if (key.size() > prefix.size() && key.compare(0, prefix.size(), prefix) == 0) labels.insert(key[prefix.size()]);
    }
    const bool ends = values_.count(prefix) > 0;
    const auto is_free = [&](uint32_t index) { return index != 0 && taken_.count(index) == 0; };
    uint32_t offset = 1;
    const auto fits = [&] {
      if (ends && !is_free(node ^ offset)) return false;
      return std::all_of(labels.begin(), labels.end(), [&](uint8_t c) { return is_free(node ^ offset ^ c); });
    };
    while (!fits()) ++offset;
    unit(node) |= offset << 10 | (ends ? 1u << 8 : 0);
    if (ends) {
      taken_.insert(node ^ offset);
      unit(node ^ offset) = values_[prefix] | 1u << 31;
    }
    for (const uint8_t c : labels) taken_.insert(node ^ offset ^ c);
    for (const uint8_t c : labels) {
      unit(node ^ offset ^ c) = c;
      place(node ^ offset ^ c, prefix + static_cast<char>(c));
    }
  }
  uint32_t& unit(uint32_t index) {
    if (index >= units_.size()) units_.resize(index + 1);
    return units_[index];
  }

  std::map<std::string, uint32_t> values_;
  std::string blob_;
  std::vector<uint32_t> units_;
  std::set<uint32_t> taken_;
};

const Replacements kReplacements = {{"\t", " "}, {"ａ", "a"},    {"ａｂ", "xy"},
                                    {"ﬁ", "fi"}, {"\u0301", ""}, {"e\u0301", "é"}};

std::string mapped(const CharsMap& map, std::string_view text) {
  std::string out;
  for (size_t pos = 0; pos < text.size();) pos += map.append(text, pos, out);
  return out;
}

TEST(CharsMap, TheLongestKeyIsReplaced) {
  const auto map = CharsMap::parse(CharsMapWriter(kReplacements).blob());
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(mapped(*map, "ﬁn\tｂ ａｂａ"), "fin ｂ xya");
  EXPECT_EQ(mapped(*map, "cafe\u0301 a\u0301"), "café a");
  EXPECT_EQ(mapped(*map, "\xC3 \xFFz"), "\uFFFD \uFFFDz") << "bytes that are no characters";
  EXPECT_EQ(mapped(CharsMap(), "ﬁ"), "ﬁ");
}

TEST(CharsMap, DamagedBlobsAreRefusedOrHarmless) {
  const std::string blob = CharsMapWriter(kReplacements).blob();
  for (size_t n = 1; n < blob.size(); ++n) {
    if (const auto map = CharsMap::parse(blob.substr(0, n))) mapped(*map, "ﬁn\tｂ ａｂａ cafe\u0301");
  }
  for (size_t i = 0; i < blob.size(); ++i) {
    std::string other = blob;
    other[i] = static_cast<char>(other[i] ^ 0x55);
    if (const auto map = CharsMap::parse(other)) mapped(*map, "ﬁn\tｂ ａｂａ cafe\u0301");
  }
  EXPECT_FALSE(CharsMap::parse("abc"));
  EXPECT_FALSE(CharsMap::parse(std::string("\xFF\xFF\0\0", 4)));
}

gguf::Metadata metadata_of(const TestVocab& v, bool merge_spaces = true) {
  gguf::Metadata m = v.metadata();
  const std::string blob = CharsMapWriter(kReplacements).blob();
  std::vector<int64_t> bytes;
  for (const char c : blob) bytes.push_back(static_cast<uint8_t>(c));
  m.set("tokenizer.ggml.precompiled_charsmap", {.type = gguf::ValueType::u8, .is_array = true, .data = bytes});
  m.set_bool("tokenizer.ggml.remove_extra_whitespaces", merge_spaces);
  m.set_bool("tokenizer.ggml.add_space_prefix", true);
  m.set_bool("tokenizer.ggml.add_bos_token", true);
  m.set_bool("tokenizer.ggml.add_eos_token", true);
  for (const auto& [key, id] : {std::pair("bos", 0), {"padding", 1}, {"eos", 2}, {"unknown", 3}}) {
    m.set_int("tokenizer.ggml." + std::string(key) + "_token_id", gguf::ValueType::u32, id);
  }
  return m;
}

Tokenizer make(const gguf::Metadata& m) {
  auto tokenizer = Tokenizer::from_metadata(m);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return std::move(*tokenizer);
}

// The largest sum of scores over every way to cut `text`, which pieces must cover.
double best_score(const TestVocab& v, const std::string& text) {
  if (text.empty()) return 0;
  double best = -1e9;
  for (size_t id = 4; id < v.tokens.size(); ++id) {
    if (text.compare(0, v.tokens[id].size(), v.tokens[id]) != 0) continue;
    best = std::max(best, v.scores[id] + best_score(v, text.substr(v.tokens[id].size())));
  }
  return best;
}

TEST(Unigram, FindsTheBestOfAllCuts) {
  const TestVocab v = TestVocab::unigram();
  const Tokenizer t = make(metadata_of(v));
  for (int number = 0; number < 3 * 3 * 3 * 3 * 3 * 3; ++number) {
    std::string text;
    for (int n = number, i = 0; i < 6; ++i, n /= 3) text += "abc"[n % 3];
    if (number % 5 == 0) text.insert(3, " ");
    std::string spelt, written = "▁" + text;
    if (const size_t space = written.find(' '); space != std::string::npos) written.replace(space, 1, "▁");
    double sum = 0;
    for (const int32_t id : t.encode(text, EncodeMode::plain, false)) {
      spelt += v.tokens[static_cast<size_t>(id)];
      sum += v.scores[static_cast<size_t>(id)];
    }
    ASSERT_EQ(spelt, written);
    ASSERT_NEAR(sum, best_score(v, written), 1e-6) << text;
  }
}

TEST(Unigram, NormalisesAndCoversTheUnknown) {
  const TestVocab v = TestVocab::unigram();
  const Tokenizer t = make(metadata_of(v));
  const auto text_of = [&](std::string_view text, const Tokenizer& by) {
    std::string out;
    for (const int32_t id : by.encode(text, EncodeMode::plain, false)) out += v.tokens[static_cast<size_t>(id)] + "|";
    return out;
  };
  EXPECT_EQ(text_of("  a \t b  ", t), "▁a|▁|b|");
  EXPECT_EQ(text_of("  a \t b  ", make(metadata_of(v, false))), "▁|▁|▁a|▁|▁|▁|b|▁|▁|");
  EXPECT_EQ(text_of("ﬁe\u0301", t), "▁|fi|é|");
  EXPECT_EQ(text_of("zz日a", t), "▁|<unk>|a|") << "neighbours are one unknown token";
  EXPECT_EQ(text_of("a<s>", t), "▁a|<unk>|") << "untrusted text is no control token";
  EXPECT_EQ(text_of(" ", t), "");
  EXPECT_EQ(t.encode("a", EncodeMode::plain, true), (Ids{0, t.find_token(" a"), 2}));
  EXPECT_EQ(t.decode(t.encode("ab ca", EncodeMode::plain, true), false), "ab ca");
}

TEST(Unigram, PairsAreThoseOfItsFamily) {
  const Tokenizer t = make(metadata_of(TestVocab::unigram()));
  const int32_t a = t.find_token(" a"), ab = t.find_token(" ab");
  const Tokenizer::Pair pair = t.encode_pair("a", "ab");
  EXPECT_EQ(pair.ids, (Ids{0, a, 2, 2, ab, 2}));
  EXPECT_EQ(pair.second_at, 4);
}

}  // namespace
}  // namespace chimere::tokenizer
