// Notes: found by their words, kept in files that grow by a line, within their limits.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/scratch_for_test.h"
#include "retrieval/note_library.h"
#include "retrieval/words.h"

namespace chimere::retrieval {
namespace {

std::vector<int32_t> letters(std::string_view text) { return {text.begin(), text.end()}; }
float equally_rare(std::string_view) { return 1; }

Note accepted(const std::string& text, const std::string& source = "accepted") {
  Note note;
  note.source = source;
  note.day = 20000;
  note.score = 5;
  note.text = text;
  return note;
}

std::shared_ptr<const Notebook> notebook(const std::vector<std::string>& texts) {
  std::vector<Note> notes;
  for (const std::string& text : texts) notes.push_back(accepted(text));
  return Notebook::make(notes, 20000, letters);
}

std::string first_about(const Notebook& notes, const std::string& question) {
  const auto found = notes.about(question, 3, equally_rare);
  return found.empty() ? "" : std::string(found[0].text);
}

mode_t mode_of(const std::filesystem::path& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

TEST(Words, AreComparedWithoutCaseAccentsPluralsAndEndings) {
  const auto term = [](std::string_view text) { return words_of(text).at(0).term; };
  EXPECT_EQ(term("Keys"), term("key"));
  EXPECT_EQ(term("Éclair"), term("eclair"));
  EXPECT_EQ(term("allergic"), term("allergy"));
  EXPECT_NE(term("1874"), term("18741"));
  EXPECT_NE(term("boss"), term("bos"));
  EXPECT_EQ(words_of("Ann's dog, in room 214.").size(), 6u);
  EXPECT_TRUE(words_of("in Paris").at(1).is_name);
  EXPECT_FALSE(words_of("Where is it").at(0).is_name);
  EXPECT_EQ(words_of("日本語").size(), 3u);
  EXPECT_EQ(words_of("\xff\xfe a").size(), 1u);
  EXPECT_TRUE(is_small_word("Which"));
  EXPECT_FALSE(is_small_word("capital"));
}

TEST(Notebook, FindsWhatAQuestionIsAbout) {
  const auto notes = notebook({"The capital of Zubrovia is Lutzhaven.", "The key of the shed hangs behind the door.",
                               "Tom is allergic to peanuts.", "The Brindle bridge was built in 1874."});
  EXPECT_EQ(first_about(*notes, "Which town is the capital of Zubrovia?"), "The capital of Zubrovia is Lutzhaven.");
  EXPECT_EQ(first_about(*notes, "where do I find the shed keys"), "The key of the shed hangs behind the door.");
  EXPECT_EQ(first_about(*notes, "Has Tom an allergy?"), "Tom is allergic to peanuts.");
  // What shares a word only is about something else.
  EXPECT_EQ(first_about(*notes, "What is the capital of France?"), "");
  EXPECT_EQ(first_about(*notes, "How are you today?"), "");
  EXPECT_EQ(first_about(*notes, ""), "");
  EXPECT_TRUE(notes->about("Which town is the capital of Zubrovia?", 0, equally_rare).empty());
}

TEST(Notebook, GivesATextOnceAndALongOneInPieces) {
  std::string book;
  for (int i = 0; i < 200; ++i) book += "Chapter " + std::to_string(i) + " tells of the weather.\n\n";
  book += "The lighthouse of Ornsay was painted red.\n";
  const auto notes = notebook({"Ann likes tea.", "Ann likes tea.", "Ann likes tea.", book});
  EXPECT_EQ(notes->about("What does Ann like, tea?", 3, equally_rare).size(), 1u);
  EXPECT_EQ(notes->size(), 4u);
  const auto found = notes->about("How was the lighthouse of Ornsay painted?", 1, equally_rare);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].text.find("painted red"), std::string_view::npos);
  EXPECT_LE(found[0].text.size(), Notebook::kMaxPieceBytes);
}

TEST(Notebook, TheSameWhetherMadeAtOnceOrGrown) {
  const std::vector<std::string> texts = {"The capital of Zubrovia is Lutzhaven.", "Tom is allergic to peanuts.",
                                          "The river Osska flows into Lake Mern."};
  const auto whole = notebook(texts);
  std::shared_ptr<const Notebook> grown = notebook({});
  for (const std::string& text : texts) grown = grown->with(accepted(text), 20000, letters);
  for (const char* question : {"capital of Zubrovia", "What is Tom allergic to?", "Where does the Osska flow?"}) {
    EXPECT_EQ(first_about(*whole, question), first_about(*grown, question));
    EXPECT_NE(first_about(*whole, question), "");
  }
  EXPECT_EQ(whole->ngrams()->count_keys(), grown->ngrams()->count_keys());
}

class Notes : public testing::Test {
 protected:
  uint64_t add(NoteLibrary& library, const std::string& owner, const std::string& text) {
    auto id = library.add(owner, accepted(text), letters);
    EXPECT_TRUE(id) << id.error().message;
    return id ? *id : 0;
  }
  std::string refusal(NoteLibrary& library, const std::string& owner, const std::string& text) {
    auto id = library.add(owner, accepted(text), letters);
    EXPECT_FALSE(id) << owner;
    if (id) return "";
    EXPECT_EQ(id.error().code, Code::exhausted);
    return id.error().message;
  }
  const std::filesystem::path folder_ = fixture::scratch_folder() / "fresh";
};

TEST_F(Notes, AreKeptInAFileThatGrowsAndIsReadableByItsOwnerAlone) {
  {
    NoteLibrary library(folder_, {});
    EXPECT_EQ(add(library, "ann", "One."), 1u);
    const auto path = NoteLibrary::file_of(folder_, "ann");
    struct stat before {
    }, after{};
    ASSERT_EQ(::stat(path.c_str(), &before), 0);
    EXPECT_EQ(add(library, "ann", "Two\nlines."), 2u);
    ASSERT_EQ(::stat(path.c_str(), &after), 0);
    EXPECT_EQ(before.st_ino, after.st_ino) << "appended to, not written anew";
    EXPECT_EQ(mode_of(path), 0600u);
    EXPECT_EQ(mode_of(folder_ / "users"), 0700u);
    EXPECT_EQ(mode_of(folder_), 0700u);
    EXPECT_TRUE(*library.forget("ann", [](const Note& note) { return note.id == 1; }));
    EXPECT_EQ(mode_of(path), 0600u);
  }
  NoteLibrary library(folder_, {});
  const auto notes = library.list("ann");
  ASSERT_TRUE(notes);
  ASSERT_EQ(notes->size(), 1u);
  EXPECT_EQ(notes->at(0).text, "Two\nlines.");
  EXPECT_EQ(notes->at(0).id, 2u);
  EXPECT_EQ(add(library, "ann", "Three."), 3u);
  EXPECT_EQ((*library.open("ann", letters))->size(), 2u);
  EXPECT_EQ(*library.open("bob", letters), nullptr);
}

TEST_F(Notes, AFolderThatWasThereKeepsItsMode) {
  std::filesystem::create_directories(folder_ / "users");
  ::chmod((folder_ / "users").c_str(), 0755);
  NoteLibrary library(folder_, {});
  add(library, "ann", "One.");
  EXPECT_EQ(mode_of(folder_ / "users"), 0755u);
  EXPECT_EQ(mode_of(NoteLibrary::file_of(folder_, "ann")), 0600u);
}

TEST_F(Notes, ALineThatWasCutOffSpoilsItselfAlone) {
  NoteLibrary library(folder_, {});
  add(library, "ann", "One.");
  std::ofstream(NoteLibrary::file_of(folder_, "ann"), std::ios::app) << R"({"id":2,"source":"acc)";
  EXPECT_EQ(library.check().size(), 1u);
  add(library, "ann", "Three.");
  const auto notes = library.list("ann");
  ASSERT_TRUE(notes);
  ASSERT_EQ(notes->size(), 2u);
  EXPECT_EQ(notes->at(1).text, "Three.");
}

TEST_F(Notes, WhatAnotherProcessAddsIsSeen) {
  NoteLibrary ours(folder_, {}), theirs(folder_, {});
  add(ours, "ann", "One.");
  EXPECT_EQ((*ours.open("ann", letters))->size(), 1u);
  EXPECT_EQ(add(theirs, "ann", "Two, from elsewhere."), 2u);
  EXPECT_EQ((*ours.open("ann", letters))->size(), 2u);
  EXPECT_EQ(add(ours, "ann", "Three."), 3u);
}

TEST_F(Notes, HaveLimitsForAUserAKeyAndAll) {
  NoteLimits limits;
  limits.file_bytes = 1000;
  limits.file_notes = 3;
  limits.key_bytes = 1500;
  limits.key_files = 3;
  limits.all_bytes = 2500;
  limits.all_files = 5;
  NoteLibrary library(folder_, limits);
  const std::string half(500, 'a');
  // One user: bytes, and notes.
  add(library, "key/ann", half);
  EXPECT_NE(refusal(library, "key/ann", half).find("this user is full: expected at most 1000 bytes"),
            std::string::npos);
  add(library, "key/ann", "b");
  add(library, "key/ann", "c");
  EXPECT_NE(refusal(library, "key/ann", "d").find("at most 3 notes"), std::string::npos);
  // The users of a key: bytes, and how many of them.
  add(library, "key/bob", half);
  EXPECT_NE(refusal(library, "key/eve", half).find("this key and its users"), std::string::npos);
  add(library, "key/eve", "e");
  EXPECT_NE(refusal(library, "key/max", "m").find("at most 3 users"), std::string::npos);
  // A user whose name begins like the key's is not below it.
  add(library, "keyhole", half);
  // All.
  EXPECT_NE(refusal(library, "x", std::string(900, 'x')).find("all users together"), std::string::npos);
  add(library, "x", "x");
  for (int i = 0; i < 200; ++i) {
    EXPECT_NE(refusal(library, "made-up-" + std::to_string(i), "y").find("at most 5 users"), std::string::npos);
  }
  const auto used = library.usages("key/ann");
  EXPECT_EQ(used.all.files, 5u);
  EXPECT_EQ(used.key.files, 3u);
  EXPECT_EQ(used.all.bytes, library.known_usage().bytes);
  // What was refused left nothing behind, and what is forgotten makes room.
  EXPECT_EQ(*library.open("made-up-0", letters), nullptr);
  EXPECT_TRUE(*library.forget("keyhole", [](const Note&) { return true; }));
  add(library, "made-up-0", "y");
}

}  // namespace
}  // namespace chimere::retrieval
