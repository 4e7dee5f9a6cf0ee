// passage_memory.h  Passages that mean the same as a question, as memory of its answer: the model reads them
// (recall.h), and their n-grams join the mixture (engram/table_memory.h), each passage as a small table whose weight is
// its similarity.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engram/table_memory.h"
#include "orchestrator/chat_chunk.h"
#include "orchestrator/chat_request.h"
#include "orchestrator/embedder.h"
#include "retrieval/passage_library.h"

namespace chimere::orchestrator {

class PassageMemory {
 public:
  // `tokenizer`: of the model that answers. `library`: null: there are no passages. All of them outlive this.
  PassageMemory(const Tokenizer& tokenizer, std::shared_ptr<retrieval::PassageLibrary> library)
      : tokenizer_(tokenizer), library_(std::move(library)) {}
  // One whose vectors files may hold. Before the first find().
  void add_embedder(Embedder& embedder) { embedders_.push_back(&embedder); }

  struct Found {
    std::vector<engram::WeightedTable> tables;
    std::vector<UsedPassage> used;  // best first
  };
  // The passages nearest to `query` that `use` asks for; none when it asks for none. Blocks for as long as an engine
  // needs to embed one short text: not on the engine's thread. Refuses a file that no embedder here has made.
  Result<Found> find(const MemoryUse& use, const std::string& query,
                     std::chrono::steady_clock::time_point deadline) const;
  // The same for texts that others found, behind those that are there.
  Status join(const std::vector<LookedUp>& looked_up, Found& found) const;

 private:
  engram::TableShape shape() const;
  Result<Embedder*> embedder_of(const retrieval::PassageIndex& index, const std::string& name) const;

  const Tokenizer& tokenizer_;
  const std::shared_ptr<retrieval::PassageLibrary> library_;
  std::vector<Embedder*> embedders_;
};

}  // namespace chimere::orchestrator
