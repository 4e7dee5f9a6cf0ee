// collection_models_test.cpp  How a file says its vectors are used, and the encoder in the box from texts to hits.
#include "orchestrator/collection_models.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "gguf/writer.h"
#include "orchestrator/models_for_test.h"
#include "retrieval/collections.h"

namespace chimere::orchestrator {
namespace {

constexpr const char* kTinyEncoder = CHIMERE_TESTS_DIR "/golden/models/bert-mean/model.gguf";
constexpr int kTinyDimensions = 64;

using EncoderPtr = std::unique_ptr<EmbeddingModel>;

Result<EncoderPtr> open_encoder_file(const std::string& path) {
  LoadOptions options;
  options.max_rows = 256;
  options.n_threads = 2;
  TRY_ASSIGN(auto model, models::Model::load(path, models::BackendKind::cpu, options));
  return EmbeddingModel::open(std::move(model), {});
}

// The tiny encoder with keys more.
Result<EncoderPtr> open_with(const std::vector<std::pair<std::string, gguf::Value>>& keys) {
  TRY_ASSIGN(const gguf::File file, gguf::File::open(kTinyEncoder));
  gguf::Writer writer;
  for (const auto& [key, value] : file.metadata().entries()) writer.metadata().set(key, value);
  for (const auto& [key, value] : keys) writer.metadata().set(key, value);
  for (const TensorView& tensor : file.tensors()) {
    TRY(writer.add_tensor(std::string(tensor.name), tensor.type, tensor.ne,
                          std::span(tensor.data, tensor.size_bytes())));
  }
  const std::string path = testing::TempDir() + "collection_models_test_" + std::to_string(getpid()) + ".gguf";
  TRY(writer.write_file(path));
  auto opened = open_encoder_file(path);
  std::filesystem::remove(path);
  return opened;
}

gguf::Value number(double value) {
  gguf::Metadata metadata;
  metadata.set_float("n", value);
  return *metadata.find("n");
}

gguf::Value count(int64_t value) {
  gguf::Metadata metadata;
  metadata.set_int("n", gguf::ValueType::i32, value);
  return *metadata.find("n");
}

double product(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

std::vector<std::vector<float>> vectors_of(const retrieval::TextEmbedder& embedder, const std::string& text,
                                           bool by_windows = false) {
  auto found =
      (by_windows ? embedder.embed_windows : embedder.embed)({&text, 1}, retrieval::TextEmbedder::Deadline::max());
  EXPECT_TRUE(found) << found.error().message;
  return found ? std::move(*found) : std::vector<std::vector<float>>(1);
}

TEST(CollectionModels, AFileSaysHowItsVectorsAreUsed) {
  const auto plain = open_encoder_file(kTinyEncoder);
  ASSERT_TRUE(plain) << plain.error().message;
  const auto usual = text_embedder((*plain)->embedder());
  EXPECT_FALSE(usual.score_weight);
  EXPECT_FALSE(usual.embed_windows);
  EXPECT_EQ(usual.dimensions, kTinyDimensions);
  const auto changed = open_with({{"chimere.retrieval.score_weight", number(8)},
                                  {"chimere.retrieval.hop_tokens", count(4)},
                                  {"chimere.retrieval.dimensions", count(5)},
                                  {"chimere.retrieval.least_cosine", number(0.25)}});
  ASSERT_TRUE(changed) << changed.error().message;
  const auto made = text_embedder((*changed)->embedder());
  EXPECT_EQ(made.score_weight, 8.0);
  EXPECT_EQ(made.least_cosine, 0.25);
  EXPECT_EQ(made.dimensions, 5);
  const std::string text = "the first values of a vector count alone and have its direction";
  const std::vector<float> whole = vectors_of(usual, text)[0], kept = vectors_of(made, text)[0];
  ASSERT_EQ(whole.size(), size_t{kTinyDimensions});
  ASSERT_EQ(kept.size(), 5u);
  EXPECT_NEAR(product(kept, kept), 1, 1e-5);
  const auto first = std::span(whole).first(5);
  EXPECT_NEAR(product(kept, first) * product(kept, first), product(first, first), 1e-5);
  const std::vector<float> windows = vectors_of(made, text, true)[0];
  ASSERT_EQ(windows.size() % 5, 0u);
  ASSERT_GT(windows.size(), 5u);
  for (size_t at = 0; at < windows.size(); at += 5) {
    EXPECT_NEAR(product(std::span(windows).subspan(at, 5), std::span(windows).subspan(at, 5)), 1, 1e-5) << at;
  }
}

TEST(CollectionModels, AFileThatSaysItWrongIsRefused) {
  const std::pair<const char*, gguf::Value> wrong[] = {
      {"score_weight", number(-1)},  {"score_weight", number(1001)}, {"hop_tokens", count(-1)},
      {"hop_tokens", count(4097)},   {"dimensions", count(0)},       {"dimensions", count(kTinyDimensions + 1)},
      {"least_cosine", number(1.5)}, {"vector_weight", number(101)},
  };
  for (const auto& [name, value] : wrong) {
    const std::string key = std::string("chimere.retrieval.") + name;
    const auto opened = open_with({{key, value}});
    ASSERT_FALSE(opened) << key;
    EXPECT_NE(opened.error().message.find(key), std::string::npos) << opened.error().message;
    EXPECT_NE(opened.error().message.find("expected"), std::string::npos) << opened.error().message;
  }
  // Windows are means of states, and of a first token there is none.
  const auto opened = open_with({{"bert.pooling_type", count(2)}, {"chimere.retrieval.hop_tokens", count(8)}});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("pooling_type 2"), std::string::npos) << opened.error().message;
}

class EncoderInTheBox : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_encoder_file(kEncoderInTheBox);
    ASSERT_TRUE(opened) << opened.error().message;
    model_ = std::move(*opened);
    embedder_ = text_embedder(model_->embedder());
  }

  EncoderPtr model_;
  retrieval::TextEmbedder embedder_;
};

// What training/embed/model.py computes of the file's weights.
TEST_F(EncoderInTheBox, ComputesWhatItWasTrainedToCompute) {
  EXPECT_EQ(embedder_.dimensions, 128);
  EXPECT_EQ(embedder_.score_weight, 8.0);
  EXPECT_LE(std::filesystem::file_size(kEncoderInTheBox), 10'000'000u);
  EmbedCall call;
  call.inputs = {{"How is anaemia treated?"}, {"High blood pressure is treated with tablets that widen the vessels."}};
  const auto found = model_->embedder().embed_now(std::move(call));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->n_tokens, 8 + 15);
  const float expected[2][6] = {{-0.0259f, -0.0540f, -0.0184f, 0.0895f, 0.0619f, -0.0305f},
                                {0.0133f, -0.0690f, -0.0528f, 0.0623f, 0.0067f, -0.1062f}};
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(found->vectors[i].size(), 320u);
    for (size_t j = 0; j < 6; ++j) EXPECT_NEAR(found->vectors[i][j], expected[i][j], 3e-3) << i << ", " << j;
  }
  std::string text;
  for (int i = 1; i <= 10; ++i) {
    text += (i > 1 ? " Sentence " : "Sentence ") + std::to_string(i) +
            " is about the treatment of anaemia in children and adults.";
  }
  const float first_values[4][3] = {{-0.1220f, -0.1527f, -0.0441f},
                                    {-0.1297f, -0.1553f, -0.0433f},
                                    {-0.1323f, -0.1606f, -0.0374f},
                                    {-0.1315f, -0.1552f, -0.0355f}};
  const std::vector<float> windows = vectors_of(embedder_, text, true)[0];
  ASSERT_EQ(windows.size(), 4u * 128u) << "142 tokens are 5 hops of 32";
  for (size_t w = 0; w < 4; ++w) {
    for (size_t j = 0; j < 3; ++j) EXPECT_NEAR(windows[w * 128 + j], first_values[w][j], 3e-3) << w << ", " << j;
  }
}

TEST_F(EncoderInTheBox, FindsWhatIsMeantInOtherWords) {
  const std::string path = testing::TempDir() + "collection_models_test_" + std::to_string(getpid()) + ".db";
  for (const char* ending : {"", "-wal", "-shm"}) std::filesystem::remove(path + ending);
  const auto collections = retrieval::Collections::open(path);
  ASSERT_TRUE(collections) << collections.error().message;
  const std::pair<const char*, const char*> documents[] = {
      {"pressure.md",
       "High blood pressure is treated with tablets that widen the vessels, less salt and a daily walk."},
      {"letter.md", "The king sent a messenger over the mountains to his brother."},
      {"garden.md", "Tomatoes want a sunny wall and water every evening."},
      {"sugar.md",
       "Diabetes means that the blood has too much sugar. It is treated with insulin, a diet and exercise."},
  };
  const auto add_all = [&] {
    for (const auto& [name, text] : documents) ASSERT_TRUE((*collections)->add({"", "all", name, text, 0, {}}));
  };
  const auto found = [&](const char* question, bool was_asked, retrieval::SearchMode mode) {
    retrieval::SearchCall call;
    call.query = question;
    call.mode = mode;
    call.drops_unlike = !was_asked;
    const auto hits = (*collections)->search(call);
    EXPECT_TRUE(hits) << hits.error().message;
    std::vector<std::string> names;
    if (hits) {
      for (const auto& hit : *hits) names.push_back(hit.document);
    }
    return names;
  };
  using retrieval::SearchMode;
  add_all();
  EXPECT_TRUE(found("hypertension medicine", true, SearchMode::hybrid).empty()) << "there were no vectors";
  // Documents that were there before the encoder get their vectors when they are added again.
  (*collections)->use(embedder_);
  add_all();
  for (const SearchMode mode : {SearchMode::hybrid, SearchMode::vectors}) {
    const auto asked = found("hypertension medicine", true, mode);
    ASSERT_FALSE(asked.empty());
    EXPECT_EQ(asked[0], "pressure.md");
  }
  const std::vector<std::string> garden{"garden.md"};
  for (const bool was_asked : {true, false}) {
    EXPECT_EQ(found("growing vegetables", was_asked, SearchMode::hybrid), garden);
    for (const char* question : {"zebra", "how old is the universe", "who won the football world cup in 1998"}) {
      EXPECT_TRUE(found(question, was_asked, SearchMode::vectors).empty()) << question;
    }
  }
  for (const char* ending : {"", "-wal", "-shm"}) std::filesystem::remove(path + ending);
}

}  // namespace
}  // namespace chimere::orchestrator
