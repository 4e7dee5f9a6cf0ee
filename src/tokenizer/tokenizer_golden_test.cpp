// tokenizer_golden_test.cpp  Ids and texts against those of the models' own tokenizers.
//
// tests/golden/tokenizer/NAME/ holds `vocab.gguf` and `vectors.json`. The folder named by CHIMERE_SHARED has more of
// the same kind in fixtures/, and real vocabularies with expected ids in tokenizers/.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gguf/gguf.h"
#include "tokenizer/tokenizer.h"

namespace chimere {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

Tokenizer load(const fs::path& path) {
  auto file = gguf::File::open(path.string());
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  auto tokenizer = Tokenizer::from_metadata(file->metadata());
  EXPECT_TRUE(tokenizer) << (tokenizer ? "" : tokenizer.error().message);
  return *tokenizer;
}

// The same ids must come out however the text is cut into spans of one mode, also in the middle of a character.
void expect_ids(const Tokenizer& tokenizer, const std::string& text, EncodeMode mode, const Ids& expected) {
  EXPECT_EQ(tokenizer.encode(text, mode, false), expected) << text;
  const std::string_view view = text;
  for (const size_t step : {1, 5}) {
    std::vector<TextSpan> spans;
    for (size_t pos = 0; pos < view.size(); pos += step) spans.push_back({view.substr(pos, step), mode});
    EXPECT_EQ(tokenizer.encode_spans(spans, false), expected) << text << " in spans of " << step;
  }
}

std::string stream(const Tokenizer& tokenizer, const Ids& ids, bool include_special) {
  StreamDecoder decoder(tokenizer, include_special);
  std::string text;
  for (const int32_t id : ids) {
    const std::string piece = decoder.push(id);
    EXPECT_NO_THROW(nlohmann::json(piece).dump()) << "half a character";
    text += piece;
  }
  return text + decoder.finish();
}

void run_vectors(const fs::path& vocab, const fs::path& vectors) {
  SCOPED_TRACE(vocab.string());
  const Tokenizer tokenizer = load(vocab);
  const auto golden = nlohmann::json::parse(read_file(vectors));
  ASSERT_GE(golden["cases"].size(), 100u);
  for (const auto& c : golden["cases"]) {
    const auto text = c["text"].get<std::string>();
    const auto ids = c["ids"].get<Ids>();
    expect_ids(tokenizer, text, EncodeMode::special, ids);
    expect_ids(tokenizer, text, EncodeMode::text, c.value("ids_no_special", ids));
    for (const int32_t id : tokenizer.encode(text, EncodeMode::plain, false)) {
      // WordPiece has no other way to say that it does not know a word.
      if (id == tokenizer.special_ids().unk) continue;
      const TokenType type = tokenizer.token_type(id);
      EXPECT_TRUE(type == TokenType::normal || type == TokenType::byte) << text << " gave " << id;
    }
    if (!c.contains("decoded")) continue;
    const auto decoded = c["decoded"].get<std::string>();
    const auto skipped = c.value("decoded_skip_special", decoded);
    EXPECT_EQ(tokenizer.decode(ids, true), decoded);
    EXPECT_EQ(tokenizer.decode(ids, false), skipped);
    EXPECT_EQ(stream(tokenizer, ids, true), decoded);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, EncodeMode::plain, false), false), decoded);
  }
  for (const auto& chat : golden.value("chats", nlohmann::json::array())) {
    expect_ids(tokenizer, chat["text"].get<std::string>(), EncodeMode::special, chat["ids"].get<Ids>());
  }
  if (golden.contains("adds_bos")) {
    EXPECT_EQ(tokenizer.adds_bos(), golden["adds_bos"].get<bool>());
    const Ids with = tokenizer.encode("a", EncodeMode::plain, true);
    EXPECT_EQ(with.size(), tokenizer.encode("a", EncodeMode::plain, false).size() + golden["adds_bos"].get<bool>());
    if (tokenizer.adds_bos()) {
      EXPECT_EQ(with.front(), tokenizer.special_ids().bos);
    }
  }
  if (golden.contains("special")) {
    for (const auto& [text, id] : golden["special"].items()) EXPECT_EQ(tokenizer.find_token(text), id.get<int32_t>());
  }
}

fs::path shared_or_empty() {
  const char* folder = std::getenv("CHIMERE_SHARED");
  return folder == nullptr ? fs::path() : fs::path(folder);
}

TEST(TokenizerGolden, VocabulariesInTheRepository) {
  size_t n = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(CHIMERE_TESTS_DIR) / "golden" / "tokenizer")) {
    run_vectors(entry.path() / "vocab.gguf", entry.path() / "vectors.json");
    ++n;
  }
  EXPECT_GE(n, 2u);
}

TEST(TokenizerGolden, SharedFixtures) {
  const fs::path shared = shared_or_empty();
  if (shared.empty()) GTEST_SKIP() << "CHIMERE_SHARED is not set";
  size_t n = 0;
  for (const auto& entry : fs::directory_iterator(shared / "fixtures")) {
    if (!fs::exists(entry.path() / "vectors.json")) continue;
    const bool vocab_only = fs::exists(entry.path() / "vocab.gguf");
    run_vectors(entry.path() / (vocab_only ? "vocab.gguf" : "model.gguf"), entry.path() / "vectors.json");
    ++n;
  }
  EXPECT_GE(n, 10u);
}

TEST(TokenizerGolden, SharedRealVocabularies) {
  const fs::path shared = shared_or_empty();
  if (shared.empty()) GTEST_SKIP() << "CHIMERE_SHARED is not set";
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  size_t n = 0;
  for (const auto& entry : fs::directory_iterator(shared / "tokenizers")) {
    if (entry.path().extension() != ".gguf") continue;
    SCOPED_TRACE(entry.path().string());
    const Tokenizer tokenizer = load(entry.path());
    const std::string inputs = read_file(entry.path().string() + ".inp");
    std::istringstream expected(read_file(entry.path().string() + ".out"));
    std::string line;
    size_t pos = 0;
    size_t n_cases = 0;
    while (std::getline(expected, line)) {
      const size_t end = inputs.find(kSeparator, pos);
      ASSERT_NE(end, std::string::npos);
      std::istringstream numbers(line);
      Ids ids;
      for (int32_t id; numbers >> id;) ids.push_back(id);
      const std::string text = inputs.substr(pos, end - pos);
      for (const EncodeMode mode : {EncodeMode::special, EncodeMode::text, EncodeMode::plain}) {
        expect_ids(tokenizer, text, mode, ids);
      }
      if (tokenizer.kind() != VocabKind::wordpiece) {
        EXPECT_EQ(tokenizer.decode(ids, true), text);
      }
      pos = end + kSeparator.size();
      ++n_cases;
    }
    EXPECT_GE(n_cases, 40u);
    ++n;
  }
  EXPECT_GE(n, 6u);
}

}  // namespace
}  // namespace chimere
