// state_formats_test.cpp  What the program keeps on disk opens in later ones: tests/golden/state has a file of each kind as
// an earlier program wrote it, and stays as it is. Who changes a format keeps these readable, or raises its version, says
// in docs/deploy.md what becomes of old files, and adds files of the new one beside these. Each kind refuses files of a
// version that it does not know yet, and says so.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/scratch_for_test.h"
#include "cache/point_file.h"
#include "engram/edit.h"
#include "engram/table.h"
#include "improve/manifest.h"
#include "retrieval/collections.h"
#include "store/journal.h"

namespace chimere::server {
namespace {

namespace fs = std::filesystem;

constexpr engram::Vocabulary kStateVocabulary{0x1234, 1000};
const std::string kOneArtefact(64, 'a');
const std::string kOtherArtefact(64, 'b');
const PointFormat kPointFormat{0x5678, 64, 32};

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::span<const std::byte> as_bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

PointRecord point_record() {
  PointRecord record;
  record.scope = 1;
  record.owner = 2;
  for (int32_t i = 0; i < static_cast<int32_t>(kPageTokens) + 6; ++i) record.tokens.push_back(i * 3);
  record.prefilled = 60;
  record.pages = {{7, 8}};
  return record;
}

PointBytes point_bytes() {
  return {std::vector<std::byte>(kPointFormat.page_bytes, std::byte{3}),
          std::vector<std::byte>(kPointFormat.recurrent_bytes, std::byte{4})};
}

improve::Manifest manifest() {
  improve::Manifest manifest;
  manifest.serial = 3;
  manifest.promote({"ann", "lora", "code"}, {kOneArtefact, 1'790'000'000, "run-1"});
  manifest.promote({"ann", "lora", "code"}, {kOtherArtefact, 1'790'000'100, "run-2"});
  return manifest;
}

retrieval::TextEmbedder embedder() {
  retrieval::TextEmbedder embedder;
  embedder.fingerprint = 7;
  embedder.dimensions = 4;
  embedder.name = "test";
  embedder.embed = [](std::span<const std::string> texts, auto) {
    return Result<std::vector<std::vector<float>>>{std::vector<std::vector<float>>(texts.size(), {1, 0, 0, 0})};
  };
  return embedder;
}

class StateFormats : public testing::Test {
 protected:
  // A copy, as databases are written to when they are opened.
  std::string copy_of(const char* name) const {
    fs::copy_file(kept_ / name, folder_ / name);
    return (folder_ / name).string();
  }
  // With another byte at this place, where the version is.
  std::string newer(const char* name, size_t at) const {
    std::string bytes = bytes_of(kept_ / name);
    EXPECT_LT(at, bytes.size());
    bytes.at(at) = 99;
    return bytes;
  }
  std::string newer_file(const char* name, size_t at) const {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << newer(name, at);
    return path.string();
  }

  static constexpr size_t kDatabaseVersionAt = 63;  // the last byte of SQLite's user_version
  // Newest answers go away by themselves after a year; these do not.
  static constexpr store::JournalLimits kNoLimit{0};
  const fs::path kept_ = CHIMERE_TESTS_DIR "/golden/state";
  const fs::path folder_ = fixture::scratch_folder();
};

// Makes the files, for the next version of a format:
//   server_test --gtest_filter=StateFormats.DISABLED_AreWritten --gtest_also_run_disabled_tests
TEST_F(StateFormats, DISABLED_AreWritten) {
  fs::create_directories(kept_);
  const auto path = [this](const char* name) { return (kept_ / name).string(); };
  const auto write = [&](const char* name, std::string_view bytes) {
    std::ofstream(path(name), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  {
    auto journal = store::Journal::open(path("journal.db"), store::Journal::Consent::given, kNoLimit);
    ASSERT_TRUE(journal) << journal.error().message;
    store::JournalAnswer answer;
    answer.owner = "ann";
    answer.request_id = "request-1";
    answer.answer_id = "chatcmpl-1";
    answer.created = 1'790'000'000;
    answer.model = "nano";
    answer.route = "code";
    answer.artefacts = {"lora:one"};
    answer.messages.emplace_back();
    answer.messages[0].role = "user";
    answer.messages[0].content = "hello";
    answer.answer = "good evening";
    answer.finish = "stop";
    (*journal)->add(answer);
    ASSERT_TRUE((*journal)->give("ann", "request-1", {store::FeedbackKind::correction, 0, "good morning"}));
    ASSERT_TRUE((*journal)->agree("ann", true));
  }
  {
    auto collections = retrieval::Collections::open(path("collections.db"));
    ASSERT_TRUE(collections) << collections.error().message;
    (*collections)->use(embedder());
    ASSERT_TRUE((*collections)->add({"ann", "notes", "shed.md", "The key of the shed hangs behind the door.", 0, {}}));
  }
  ASSERT_TRUE(engram::build_table(path("table.engram"), {kStateVocabulary, 2, 4},
                                  {{{"one", engram::kNeverAges, 5, 0}, {{1, 2, 3, 4}}}}));
  const std::vector<std::byte> point = encode_point(kPointFormat, point_record(), point_bytes());
  write("cache.point", {reinterpret_cast<const char*>(point.data()), point.size()});
  write("manifest.json", improve::manifest_text(manifest()));
}

TEST_F(StateFormats, JournalOpens) {
  auto journal = store::Journal::open(copy_of("journal.db"), store::Journal::Consent::ask, kNoLimit);
  ASSERT_TRUE(journal) << journal.error().message;
  const auto answers = (*journal)->list("ann", 0, 10);
  ASSERT_TRUE(answers && answers->size() == 1);
  const store::KeptAnswer& answer = answers->front();
  EXPECT_EQ(answer.request_id, "request-1");
  EXPECT_EQ(answer.created, 1'790'000'000);
  EXPECT_EQ(answer.route, "code");
  EXPECT_EQ(answer.artefacts, R"(["lora:one"])");
  EXPECT_EQ(answer.messages, R"([{"role":"user","content":"hello"}])");
  EXPECT_EQ(answer.answer, "good evening");
  ASSERT_TRUE(answer.correction());
  EXPECT_EQ(*answer.correction(), "good morning");
  EXPECT_EQ((*journal)->state("ann")->agreed, true);
  // And is written to.
  ASSERT_TRUE((*journal)->set_score(answer.id, 4, "sum", "adds up"));
  EXPECT_EQ((*journal)->find("ann", "request-1")->value().scored, 4);
}

TEST_F(StateFormats, JournalOfANewerProgramIsRefused) {
  const std::string path = newer_file("journal.db", kDatabaseVersionAt);
  const auto journal = store::Journal::open(path, store::Journal::Consent::ask, kNoLimit);
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().code, Code::unsupported);
  EXPECT_NE(journal.error().message.find(path + ": was written by a newer program"), std::string::npos)
      << journal.error().message;
}

TEST_F(StateFormats, CollectionsOpen) {
  auto collections = retrieval::Collections::open(copy_of("collections.db"));
  ASSERT_TRUE(collections) << collections.error().message;
  (*collections)->use(embedder());
  for (const retrieval::SearchMode mode : {retrieval::SearchMode::words, retrieval::SearchMode::vectors}) {
    retrieval::SearchCall call;
    call.owner = "ann";
    call.query = "where is the key?";
    call.mode = mode;
    const auto hits = (*collections)->search(call);
    ASSERT_TRUE(hits && hits->size() == 1) << retrieval::search_mode_name(mode);
    EXPECT_EQ(hits->front().document, "shed.md");
  }
  ASSERT_TRUE((*collections)->add({"ann", "notes", "lamp.md", "The lamp is in the hall.", 0, {}}));
  EXPECT_EQ((*collections)->usage("ann")->documents, 2u);
}

TEST_F(StateFormats, CollectionsOfANewerProgramAreRefused) {
  const std::string path = newer_file("collections.db", kDatabaseVersionAt);
  const auto collections = retrieval::Collections::open(path);
  ASSERT_FALSE(collections);
  EXPECT_EQ(collections.error().code, Code::unsupported);
  EXPECT_NE(collections.error().message.find(path + ": was written by a newer program"), std::string::npos)
      << collections.error().message;
}

TEST_F(StateFormats, EngramTableOpens) {
  const std::string path = copy_of("table.engram");
  const std::vector<int32_t> before{1, 2, 3};
  const auto follows = [&](int32_t token) {
    const auto table = engram::Table::open(path, kStateVocabulary, 0);
    EXPECT_TRUE(table) << table.error().message;
    engram::Hit hit;
    return table && (*table)->find(engram::Table::context_of(before), 3, hit) && hit.next.size() == 1 &&
           hit.next[0].token == token;
  };
  EXPECT_TRUE(follows(4));
  // And is added to.
  ASSERT_TRUE(
      engram::add_lessons(path, {kStateVocabulary, 2, 4}, {{{"two", engram::kNeverAges, 5, 0}, {{5, 6, 7}}}}, 0));
  EXPECT_TRUE(follows(4));
}

TEST_F(StateFormats, EngramTableOfANewerProgramIsRefused) {
  const std::string path = newer_file("table.engram", 4);
  const auto table = engram::Table::open(path, kStateVocabulary, 0);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, Code::unsupported);
  EXPECT_NE(table.error().message.find(path + ": expected version 1 or 2"), std::string::npos) << table.error().message;
  EXPECT_NE(table.error().message.find("found version 99"), std::string::npos) << table.error().message;
}

TEST_F(StateFormats, PointOfTheDiskCacheOpens) {
  const std::string bytes = bytes_of(kept_ / "cache.point");
  PointBytes state;
  const auto record = parse_point(kPointFormat, as_bytes_of(bytes), state);
  ASSERT_TRUE(record) << record.error().message;
  const PointRecord expected = point_record();
  EXPECT_EQ(record->tokens, expected.tokens);
  EXPECT_EQ(record->pages, expected.pages);
  EXPECT_EQ(record->scope, expected.scope);
  EXPECT_EQ(record->owner, expected.owner);
  EXPECT_EQ(record->prefilled, expected.prefilled);
  EXPECT_EQ(state.tail, point_bytes().tail);
  EXPECT_EQ(state.recurrent, point_bytes().recurrent);
}

TEST_F(StateFormats, PointOfANewerProgramIsRefused) {
  const std::string bytes = newer("cache.point", 8);
  PointBytes state;
  const auto record = parse_point(kPointFormat, as_bytes_of(bytes), state);
  ASSERT_FALSE(record);
  EXPECT_NE(record.error().message.find("version"), std::string::npos) << record.error().message;
  EXPECT_NE(record.error().message.find("99"), std::string::npos) << record.error().message;
}

TEST_F(StateFormats, ManifestOpens) {
  const auto read = improve::parse_manifest(bytes_of(kept_ / "manifest.json"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->serial, 3u);
  const improve::Version* version = read->in_use({"ann", "lora", "code"});
  ASSERT_TRUE(version);
  EXPECT_EQ(version->artefact, kOtherArtefact);
  EXPECT_EQ(version->since, 1'790'000'100);
  EXPECT_EQ(version->run, "run-2");
  EXPECT_EQ(read->history.size(), 2u);
}

TEST_F(StateFormats, ManifestOfANewerProgramIsRefused) {
  const auto read = improve::parse_manifest(R"({"version":2,"serial":1,"in_use":[]})");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::unsupported);
  EXPECT_EQ(read.error().message, "manifest: was written by a newer program: expected version 1, found 2");
}

}  // namespace
}  // namespace chimere::server
