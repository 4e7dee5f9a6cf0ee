// edit_test.cpp  Adding, merging, ageing and forgetting; who sees whose table.
#include <algorithm>

#include "engram/library.h"
#include "engram/tables_for_test.h"

namespace chimere::engram {
namespace {

const Ids kFact = {11, 12, 13, 14, 15};
const Ids kOther = {11, 12, 23, 24, 25};

TEST_F(TablesTest, AddingInPartsEqualsBuildingAtOnce) {
  ASSERT_TRUE(build_table(path("whole.engram"), kTestShape, {lesson("a", {kFact}), lesson("b", {kOther, kFact})}));
  ASSERT_TRUE(add_lessons(path("parts.engram"), kTestShape, {lesson("a", {kFact})}, 3));
  ASSERT_TRUE(add_lessons(path("parts.engram"), kTestShape, {lesson("b", {kOther})}, 3));
  ASSERT_TRUE(add_lessons(path("parts.engram"), kTestShape, {lesson("b", {kFact})}, 3));
  EXPECT_EQ(bytes(path("whole.engram")), bytes(path("parts.engram")));
  ASSERT_TRUE(build_table(path("a.engram"), kTestShape, {lesson("a", {kFact})}));
  ASSERT_TRUE(build_table(path("b.engram"), kTestShape, {lesson("b", {kOther, kFact})}));
  ASSERT_TRUE(merge_tables(path("merged.engram"), {path("a.engram"), path("b.engram")}, kTestVocabulary));
  EXPECT_EQ(bytes(path("whole.engram")), bytes(path("merged.engram")));
}

TEST_F(TablesTest, ForgettingASourceLeavesTheTableAsIfItHadNeverBeen) {
  ASSERT_TRUE(build_table(path("a.engram"), kTestShape, {lesson("keep", {kFact, kOther})}));
  const std::string before = bytes(path("a.engram"));
  ASSERT_TRUE(add_lessons(path("a.engram"), kTestShape, {lesson("gone", {kFact, {500, 501, 502}})}, 0));
  EXPECT_EQ(count(*open(path("a.engram")), {500, 501}, 502), 1);
  auto removed = forget_source(path("a.engram"), kTestVocabulary, "gone");
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(removed->sources, 1u);
  EXPECT_EQ(removed->keys, 1u);
  EXPECT_EQ(bytes(path("a.engram")), before);
  EXPECT_EQ(forget_source(path("a.engram"), kTestVocabulary, "gone").error().code, Code::not_found);
}

TEST_F(TablesTest, TheGateRefusesPoorTextAndChangesNothing) {
  ASSERT_TRUE(build_table(path("a.engram"), kTestShape, {lesson("good", {kFact})}));
  const std::string before = bytes(path("a.engram"));
  Status added = add_lessons(path("a.engram"), kTestShape,
                             {lesson("fine", {kOther}, kNeverAges, 4), lesson("poor", {kOther}, kNeverAges, 2.5f)}, 4);
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().message.find("poor"), std::string::npos);
  EXPECT_EQ(bytes(path("a.engram")), before);
  EXPECT_FALSE(add_lessons(path("a.engram"), kTestShape, {lesson("wild", {{1, 2, 1000}})}, 0));
  EXPECT_FALSE(add_lessons(path("a.engram"), {kTestVocabulary, 2, 5}, {lesson("x", {kFact})}, 0));
  EXPECT_FALSE(add_lessons(path("a.engram"), {{1, 1000}, 2, 8}, {lesson("x", {kFact})}, 0));
  EXPECT_EQ(bytes(path("a.engram")), before);
}

TEST_F(TablesTest, WeightsHalveAfterThirtyDaysAndAreGoneAfterNinety) {
  ASSERT_TRUE(build_table(path("a.engram"), kTestShape,
                          {lesson("old", {kFact, kFact}, 1000), lesson("curated", {kOther}, kNeverAges)}));
  const struct {
    uint32_t day;
    float weight;
  } ages[] = {{999, 2}, {1000, 2}, {1029, 2}, {1030, 1}, {1059, 1}, {1060, 0.5f}, {1089, 0.5f}, {1090, 0}};
  for (const auto& age : ages) {
    const auto table = open(path("a.engram"), age.day);
    EXPECT_EQ(count(*table, {11, 12}, 13), age.weight) << age.day;
    EXPECT_EQ(count(*table, {11, 12}, 23), 1) << age.day;
  }
  EXPECT_EQ(decay_table(path("a.engram"), kTestVocabulary, 1089)->sources, 0u);
  EXPECT_EQ(decay_table(path("a.engram"), kTestVocabulary, 1090)->sources, 1u);
  ASSERT_TRUE(build_table(path("b.engram"), kTestShape, {lesson("curated", {kOther}, kNeverAges)}));
  EXPECT_EQ(bytes(path("a.engram")), bytes(path("b.engram")));
}

TEST_F(TablesTest, TheSameSourceOnTwoDaysAgesTwice) {
  ASSERT_TRUE(add_lessons(path("a.engram"), kTestShape, {lesson("chat", {kFact}, 1000)}, 0));
  ASSERT_TRUE(add_lessons(path("a.engram"), kTestShape, {lesson("chat", {kFact}, 1040)}, 0));
  EXPECT_EQ(count(*open(path("a.engram"), 1040), {11, 12}, 13), 1.5f);
  EXPECT_EQ(forget_source(path("a.engram"), kTestVocabulary, "chat")->sources, 2u);
}

TEST_F(TablesTest, AFailedWriteLeavesTheOldTable) {
  ASSERT_TRUE(build_table(path("a.engram"), kTestShape, {lesson("a", {kFact})}));
  // Leftovers of a killed writer are not tables and disturb nobody.
  write(path("a.engram.tmp-1-1"), bytes(path("a.engram")).substr(0, 100));
  ASSERT_TRUE(add_lessons(path("a.engram"), kTestShape, {lesson("b", {kOther})}, 0));
  EXPECT_EQ(Library(folder_, kTestVocabulary).names(), std::vector<std::string>{"a"});
  EXPECT_FALSE(build_table(path("a.engram/no-folder.engram"), kTestShape, {lesson("a", {kFact})}));
  // A damaged table is not added to: what it still holds would be lost.
  write(path("damaged.engram"), bytes(path("a.engram")).substr(0, 400));
  EXPECT_FALSE(add_lessons(path("damaged.engram"), kTestShape, {lesson("b", {kOther})}, 0));
  EXPECT_EQ(bytes(path("damaged.engram")).size(), 400u);
}

TEST_F(TablesTest, ANewTableGetsItsFolderAndAUsersOwnIsReadableByNobodyElse) {
  using std::filesystem::perms;
  const auto mode = [&](const char* name) { return std::filesystem::status(path(name)).permissions(); };
  ASSERT_TRUE(build_table(path("fresh/folder/a.engram"), kTestShape, {lesson("a", {kFact})}));
  ASSERT_TRUE(add_lessons(path("own/users/ann.engram"), kTestShape, {lesson("a", {kFact})}, 0, Readers::owner));
  EXPECT_EQ(mode("own/users/ann.engram"), perms::owner_read | perms::owner_write);
  EXPECT_EQ(mode("own/users"), perms::owner_all);
  ASSERT_TRUE(add_lessons(path("own/users/ann.engram"), kTestShape, {lesson("b", {kOther})}, 0, Readers::owner));
  ASSERT_TRUE(Library(folder_ / "own", kTestVocabulary).forget_of_user("ann", "a"));
  EXPECT_EQ(mode("own/users/ann.engram"), perms::owner_read | perms::owner_write);
}

TEST_F(TablesTest, ALibraryKeepsUsersApart) {
  ASSERT_TRUE(build_table(path("general.engram"), kTestShape, {lesson("a", {kFact})}));
  for (const std::string user : {"ann", "../general", "a/b", "Ann", "%61nn"}) {
    const auto file = Library::user_file(folder_, user);
    EXPECT_EQ(file.parent_path(), folder_ / "users");
    ASSERT_TRUE(build_table(file.string(), kTestShape, {lesson(user, {kOther})}));
  }
  Library library(folder_, kTestVocabulary);
  EXPECT_EQ(library.names(), std::vector<std::string>{"general"});
  for (const std::string user : {"ann", "../general", "a/b", "Ann", "%61nn"}) {
    auto table = library.table_of_user(user);
    ASSERT_TRUE(table && *table) << user;
    EXPECT_EQ((*table)->sources().front().id, user);
  }
  EXPECT_EQ(*library.table_of_user("bob"), nullptr);
  EXPECT_EQ(*library.table_of_user(""), nullptr);
  for (const char* name : {"ann", "users/ann", "../x", ".general", ""}) EXPECT_FALSE(library.table(name)) << name;
  EXPECT_NE(library.table("medical").error().message.find("there is general"), std::string::npos);
}

TEST_F(TablesTest, ALibraryGoesOnWithoutADamagedTableAndSeesNewOnes) {
  ASSERT_TRUE(build_table(path("good.engram"), kTestShape, {lesson("a", {kFact})}));
  write(path("bad.engram"), bytes(path("good.engram")).substr(0, 200));
  Library library(folder_, kTestVocabulary);
  EXPECT_EQ(library.check().size(), 1u);
  const auto before = *library.table("good");
  EXPECT_EQ(*library.table("good"), before);
  ASSERT_TRUE(add_lessons(path("good.engram"), kTestShape, {lesson("b", {kOther})}, 0));
  const auto after = *library.table("good");
  EXPECT_EQ(count(*before, {11, 12}, 23), 0);
  EXPECT_EQ(count(*after, {11, 12}, 23), 1);
}

TEST_F(TablesTest, ATableOfWhatIsCommonLeavesOutTheRest) {
  const std::vector<Lesson> lessons = {lesson("one", {{1, 2, 3}, {1, 2, 3}, {1, 2, 4}, {5, 6, 7}}),
                                       lesson("two", {{1, 2, 4}, {1, 2, 5}})};
  ASSERT_TRUE(build_table(path("a.engram"), {kTestVocabulary, 2, 2}, lessons, 2));
  const auto table = open(path("a.engram"));
  ASSERT_TRUE(table);
  EXPECT_EQ(table->header().n_keys, 1u);  // {5, 6} was seen once
  EXPECT_EQ(count(*table, {1, 2}, 3), 2);
  EXPECT_EQ(count(*table, {1, 2}, 4), 2);  // once by each source
  EXPECT_EQ(count(*table, {1, 2}, 5), 0);
  Hit hit;
  ASSERT_TRUE(table->find(Table::context_of(Ids{1, 2}), 2, hit));
  EXPECT_EQ(hit.total, 5);  // what was left out is still a doubt
}

TEST_F(TablesTest, ATableInMemoryIsTheSameAsItsFile) {
  const Ids text = {1, 2, 3, 4, 1, 2, 3, 5, 6, 7, 8, 9};
  ASSERT_TRUE(build_table(path("a.engram"), kTestShape, {lesson("text", {text})}));
  auto in_memory = table_of_text(kTestShape, text);
  ASSERT_TRUE(in_memory) << in_memory.error().message;
  const auto from_file = open(path("a.engram"));
  EXPECT_EQ((*in_memory)->header().n_keys, from_file->header().n_keys);
  EXPECT_EQ((*in_memory)->header().body_checksum, from_file->header().body_checksum);
  EXPECT_EQ(count(**in_memory, {1, 2, 3}, 5), 1);
  auto empty = table_of_text(kTestShape, Ids{});
  ASSERT_TRUE(empty) << empty.error().message;
  EXPECT_EQ((*empty)->header().n_keys, 0u);
}

TEST_F(TablesTest, ShippedTablesStandBehindThoseOfTheFolder) {
  const TableShape shape{kTestVocabulary, 2, 2}, foreign{{0x9999, 1000}, 2, 2};
  std::filesystem::create_directories(folder_ / "shipped");
  ASSERT_TRUE(build_table(path("shipped/code.engram"), shape, {lesson("s", {{1, 2, 3}})}));
  ASSERT_TRUE(build_table(path("shipped/general.engram"), shape, {lesson("s", {{1, 2, 4}})}));
  ASSERT_TRUE(build_table(path("shipped/foreign.engram"), foreign, {lesson("s", {{1, 2, 4}})}));
  ASSERT_TRUE(build_table(path("code.engram"), shape, {lesson("s", {{1, 2, 9}})}));
  Library alone({}, kTestVocabulary, folder_ / "shipped");
  EXPECT_EQ(alone.names(), (std::vector<std::string>{"code", "general"}));
  EXPECT_TRUE(alone.check().empty());
  EXPECT_EQ(count(**alone.table("code"), {1, 2}, 3), 1);
  EXPECT_FALSE(alone.table("foreign"));
  Library both(folder_, kTestVocabulary, folder_ / "shipped");
  EXPECT_EQ(both.names(), (std::vector<std::string>{"code", "general"}));
  EXPECT_EQ(count(**both.table("code"), {1, 2}, 9), 1);
  EXPECT_EQ(count(**both.table("general"), {1, 2}, 4), 1);
}

}  // namespace
}  // namespace chimere::engram
