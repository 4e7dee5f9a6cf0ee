// workbench.h  A model that nobody is talking to: how likely it finds answers, with what is in use and with a candidate.
//
// One thread uses it. It is the model that serves, from the same file, in a process of its own: a job can be paused,
// and ended in any way, without anybody's answer knowing of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engram/table_memory.h"
#include "improve/examples.h"
#include "improve/tool_words.h"
#include "orchestrator/chat_model.h"
#include "orchestrator/memory_service.h"
#include "orchestrator/preparer.h"

namespace chimere::improve {

// How the system answers in one arm of a comparison.
struct Arm {
  std::vector<engram::WeightedTable> tables;
  std::shared_ptr<const AdapterSet> adapters;
  std::string system_prompt;  // before what the conversation has; empty: none
  std::string closing;        // behind answers in words; empty: none
  std::vector<ToolWord> words;
  std::shared_ptr<const orchestrator::ShownExamples> examples;  // null: none
};

// What the system says when it is asked.
struct Answered {
  std::string text;
  std::vector<chat::ToolCall> calls;
  bool has_ended = false;  // by itself, not by the limit of tokens
};

// A thought, as the model writes it greedily.
struct WrittenThought {
  std::vector<int32_t> ids;              // without its end
  std::vector<float> max_prob, entropy;  // of each token's row
  std::vector<bool> is_break;            // whether a line or a sentence ends with it
  float max_entropy = 0;                 // of a row of this vocabulary
};

class Workbench {
 public:
  Workbench(orchestrator::ChatModel model, int context_length);

  // Mean log-probability a token of an answer after the question: without a thought, with the owner's notes. nullopt: it
  // does not fit into the context.
  Result<std::optional<double>> score(const Asked& asked, const Wanted& wanted, const std::string& owner,
                                      const Arm& arm);
  // The same behind this thought, or this beginning of one, which is closed there.
  Result<std::optional<double>> score_behind(const Asked& asked, std::span<const int32_t> thought, const Wanted& wanted,
                                             const std::string& owner, const Arm& arm);
  // The same of a text that stands for itself, token by token behind the first.
  Result<std::vector<float>> score_text(const std::string& text, const Arm& arm);
  // The probabilities that the answer begins with these texts, of which each is one token; together 1.
  Result<std::vector<double>> choose(const std::vector<chat::Message>& messages, const std::vector<std::string>& texts);
  // Greedily, without a thought.
  Result<Answered> answer(const Asked& asked, const std::string& owner, const Arm& arm, int max_tokens);
  // The same behind this thought, or this beginning of one, which is closed there.
  Result<Answered> answer_behind(const Asked& asked, std::span<const int32_t> thought, const std::string& owner,
                                 const Arm& arm, int max_tokens);
  // What the model thinks before it answers, at most as much as a request without a budget may and `most` tokens, half of
  // the context at the most. nullopt: it has no thoughts that can be closed, or no room for one.
  Result<std::optional<WrittenThought>> think(const Asked& asked, const std::string& owner, const Arm& arm, int most);
  // Ids of the prompt, as a request would have them.
  Result<std::vector<int32_t>> prompt_of(const Asked& asked, const std::string& owner, const Arm& arm);

  // The share of the answer's tokens that are the model's first choice, each behind those before it: 1 is what it would say
  // by itself, but for its end. nullopt: it does not fit into the context.
  Result<std::optional<double>> own_share(const Asked& asked, const Wanted& wanted, const std::string& owner,
                                          const Arm& arm);
  // orchestrator::question_vector().
  Result<std::vector<float>> vector_of(const std::string& question);

  // Ids of an answer, in the form in which the model writes it. unsupported: the model's template shows calls in another
  // form than it begins them.
  Result<std::vector<int32_t>> answer_ids(const Wanted& wanted, const std::vector<chat::Tool>& tools) const;

  const Tokenizer& tokenizer() const { return model_.tokenizer; }
  engram::Vocabulary vocabulary() const;
  models::Model& model() { return *model_.model; }
  models::AdapterLibrary& adapters() { return *model_.adapters; }
  uint64_t fingerprint() const { return fingerprint_; }  // of the vocabulary and the file's size
  const std::string& name() const { return name_; }

 private:
  orchestrator::ChatRequest request_of(const Asked& asked, const std::string& owner, const Arm& arm) const;
  Result<std::vector<std::vector<float>>> embed(const std::vector<std::vector<int32_t>>& texts);
  struct Reading;
  Result<orchestrator::Prepared> prepared_to_think(const Asked& asked, const std::string& owner, const Arm& arm);
  // Of the answer behind the prompt, whose ids these are.
  Result<std::optional<double>> score_ids(std::vector<int32_t> tokens, const Wanted& wanted,
                                          const std::vector<chat::Tool>& tools, const Arm& arm);
  // Tokens that can not be drawn in this answer.
  std::vector<int32_t> never_drawn(const engine::Request& request) const;
  Result<Answered> write(const orchestrator::Prepared& prepared, std::vector<int32_t> tokens,
                         const std::vector<chat::Tool>& tools, const Arm& arm, int max_tokens);
  int32_t likeliest(std::vector<float>& logits, std::span<const int32_t> tokens, MemorySource* memory) const;

  orchestrator::ChatModel model_;
  const int context_length_;
  orchestrator::MemoryService memory_;
  orchestrator::Preparer preparer_;
  orchestrator::EmbedTexts embed_;
  uint64_t fingerprint_ = 0;
  std::string name_;
};

// A system prompt before the messages, or before the one they have.
std::vector<chat::Message> with_system(std::vector<chat::Message> messages, const std::string& prompt);

// One line of JSON each: {"question", "answer"}. What guards general ability.
struct GuardPair {
  std::string question, answer;
};
Result<std::vector<GuardPair>> read_guard(const std::string& path);
// Passages with an empty line between them: general text, for perplexity.
Result<std::vector<std::string>> read_passages(const std::string& path);

}  // namespace chimere::improve
