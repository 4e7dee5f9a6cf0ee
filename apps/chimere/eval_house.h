// eval_house.h  The model with the orchestrator around it, as the stages of `chimere eval odo` ask them, and what they
// count.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval_stages.h"
#include "eval_tasks.h"
#include "odo/odo.h"
#include "odo/routing/scoreboard.h"
#include "orchestrator/chat_service.h"
#include "orchestrator/embedder.h"
#include "retrieval/collections.h"
#include "tools/toolbox.h"

namespace chimere::apps {

struct EvalHouse {
  std::unique_ptr<orchestrator::ChatService> chat;
  tools::Toolbox box;  // the calculator, and `retrieve` where there are collections
  std::unique_ptr<orchestrator::EmbeddingModel> embedder;
  std::unique_ptr<retrieval::Collections> collections;
  std::unique_ptr<odo::Odo> odo;
};
// `collections`: the file of an empty database; empty: there are none.
Result<std::unique_ptr<EvalHouse>> open_house(const EvalOptions& options, std::shared_ptr<store::Journal> journal = {},
                                              const std::string& collections = {});

struct EvalAnswer {
  std::string content;
  orchestrator::ChatChunk last;
  std::vector<orchestrator::TokenInfo> tokens;  // where the request asks for them
  double ms = 0;
};
// A question with temperature 0; `thinks` absent: as the model does by itself.
orchestrator::ChatRequest asked(const EvalHouse& house, const std::string& text, std::optional<bool> thinks);
// Without an Ask the model alone answers.
Result<EvalAnswer> answer_of(EvalHouse& house, orchestrator::ChatRequest request, std::optional<odo::Ask> ask);

// What answers of one kind came to.
struct EvalTally {
  std::vector<odo::JudgedChoice> answers;  // chosen 1: right
  int64_t n_tokens = 0;

  void add(bool is_right, int64_t tokens, double ms);
  // How many more answers are right here than there, of the same tasks one after the other: "+4.0 % (-1.5 to 9.5)".
  std::string more_than(const EvalTally& other) const;
  // "| name | right (95 %) | tokens | ms |"
  void print_row(const std::string& name) const;
};

}  // namespace chimere::apps
