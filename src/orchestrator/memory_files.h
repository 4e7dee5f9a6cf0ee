// memory_files.h  The files that answers remember from, opened for the vocabulary of one model.
#pragma once

#include <memory>

namespace chimere::engram {
class Library;
}
namespace chimere::retrieval {
class NoteLibrary;
class PassageLibrary;
}  // namespace chimere::retrieval

namespace chimere::orchestrator {

// Null: there are none of that kind. Each of them can be used from any thread.
struct MemoryFiles {
  std::shared_ptr<engram::Library> tables = nullptr;  // of n-grams: named ones for all, and one for each owner
  std::shared_ptr<retrieval::NoteLibrary> notes = nullptr;
  std::shared_ptr<retrieval::PassageLibrary> passages = nullptr;
};

}  // namespace chimere::orchestrator
