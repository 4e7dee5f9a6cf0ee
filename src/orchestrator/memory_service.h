// memory_service.h  What answers remember: tables of n-grams, notes that users taught, and passages of documents.
//
// Two sides. Whoever prepares a request reads: which tables and notes take part, which passages are near the question.
// Users write: they teach a note, list their notes and take them back. Writing has a thread of its own, so that
// nobody's prompt waits for a lesson.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engram/table_memory.h"
#include "orchestrator/chat_request.h"
#include "orchestrator/memory_files.h"
#include "orchestrator/memory_query.h"
#include "orchestrator/passage_memory.h"
#include "orchestrator/prepare_thread.h"
#include "retrieval/note_library.h"
#include "speculative/draft_source.h"
#include "tokenizer/tokenizer.h"

namespace chimere::orchestrator {

// A text that its user accepted.
struct LessonCall {
  std::string owner;  // whose table it is for
  std::string text;
  std::string source;  // name under which it can be forgotten
  float score = 5;     // 0 to 5
  float threshold = 3.5f;
};

struct Learned {
  bool learned = false;  // false: the score is below the threshold, or there is no room
  int32_t n_tokens = 0;
  uint64_t note = 0;    // the id of the note
  std::string no_room;  // which limit stands against it; empty: none
};

// What is to be forgotten of an owner: what a source taught, one note, or everything.
struct ForgetCall {
  std::string owner;
  std::string source;
  uint64_t note = 0;  // 0: not one note
  bool everything = false;
};

struct Forgotten {
  uint64_t sources = 0;
  uint64_t notes = 0;
  uint64_t ngrams = 0;  // that nobody else taught
};

// What requests of one owner may name, and how much of the room for what is learned is taken.
struct MemoryList {
  struct Table {
    std::string name;
    uint64_t n_ngrams = 0, n_tokens = 0;
  };
  std::vector<Table> tables;  // for all
  std::optional<Table> own;   // the owner's n-grams, of notes and of a table; without a name
  size_t n_notes = 0;         // the owner's
  std::vector<std::string> passages;
  retrieval::NoteLibrary::Usages used;
  std::optional<retrieval::NoteLimits> limits;  // none: nothing is learned here
};

// What the tables of a request are to it. Null where none takes part.
struct TableSources {
  std::shared_ptr<const MemorySource> memory;              // is mixed into what the model says
  std::shared_ptr<const speculative::DraftSource> drafts;  // guesses what comes next
};

class MemoryService {
 public:
  // `tokenizer`: of the model that answers; it outlives this.
  MemoryService(const Tokenizer& tokenizer, MemoryFiles files);

  // Passages, and the embedders that can look them up. Used by the thread that prepares requests.
  PassageMemory& passages() { return passages_; }
  // What this owner accepted; null when that is nothing.
  std::shared_ptr<const retrieval::Notebook> notebook_of(const std::string& owner) const;
  // What these tables say together with `more`. not_found names the tables there are.
  Result<TableSources> sources_for(const MemoryUse& use, std::vector<engram::WeightedTable> more) const;
  const Tokenizer& tokenizer() const { return tokenizer_; }

  // Jobs. None of these blocks; `notify` is called from another thread when the job has its result.
  // Keeps a text as a note of its owner, if its score is good enough.
  std::unique_ptr<ServiceJob<Learned>> learn(LessonCall call, std::function<void()> notify);
  // not_found when there is nothing of the kind.
  std::unique_ptr<ServiceJob<Forgotten>> forget(ForgetCall call, std::function<void()> notify);
  std::unique_ptr<ServiceJob<std::vector<retrieval::Note>>> list_notes(std::string owner, std::function<void()> notify);
  std::unique_ptr<ServiceJob<std::vector<MemoryEntry>>> query(MemoryQuery query, std::function<void()> notify);
  // The tables and passages there are for this owner.
  std::unique_ptr<ServiceJob<MemoryList>> list(std::string owner, std::function<void()> notify);

  // Bytes and files of all owners; none where nothing is learned. Use it from any thread.
  std::optional<retrieval::NoteUsage> usage() const;

 private:
  retrieval::Encode encoder() const;

  const Tokenizer& tokenizer_;
  const MemoryFiles files_;
  PassageMemory passages_;
  PrepareThread lessons_;  // ends first: its jobs use the others
};

}  // namespace chimere::orchestrator
