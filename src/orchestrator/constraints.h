// constraints.h  From what a request says about the form of its answer to the constraint that the engine obeys.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "chat/dialects/dialect.h"
#include "grammar/constraint.h"
#include "grammar/vocabulary.h"
#include "orchestrator/chat_request.h"
#include "tokenizer/tokenizer.h"

namespace chimere::orchestrator {

// Whether a text has that form from its first byte to its last. An error where the form itself is none.
Result<bool> fits_form(const AnswerForm& form, std::string_view text);

// Used by one thread. Grammars that were used last are kept with their masks: agents send the same tools every time.
class Constraints {
 public:
  // `n_rows` is the number of logits of the model.
  Constraints(const Tokenizer& tokenizer, int32_t n_rows);

  struct Made {
    std::shared_ptr<const TokenConstraint> constraint;  // null: any text is right
    bool allows_calls = true;                           // the answer may begin with a tool call
    // Nothing but a form or calls, so that what comes without end is a mistake: such answers have a limit.
    bool is_bound = false;
    bool completes = false;  // near a limit; half a call must not look like a whole one
  };
  // What comes before the form.
  struct Lead {
    bool blank_lines = false;        // the answer follows a thought, and models put blank lines between them
    std::string_view thought_close;  // not empty: a thought that ends with this text, and then blank lines
  };
  Result<Made> of_chat(const ChatRequest& request, const chat::Dialect& dialect, const Lead& lead);
  Result<Made> of_completion(const CompletionRequest& request);

  // Tokens of a bound answer where the request does not say. Forms are filled with far fewer; what needs more (a long
  // list, a file as the argument of a call) says so.
  static constexpr int32_t kMaxAnswerTokens = 4096;

 private:
  static constexpr size_t kKept = 16;
  template <class Build>
  Result<std::shared_ptr<const TokenConstraint>> kept(std::string key, Build build);

  Tokenizer tokenizer_;
  std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  // By everything that the grammar was made of; the one used last comes first.
  std::deque<std::pair<std::string, std::shared_ptr<const TokenConstraint>>> made_;
};

}  // namespace chimere::orchestrator
