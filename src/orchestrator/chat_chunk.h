// chat_chunk.h  What comes out of ChatService: an answer in pieces.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/event.h"

namespace chimere::orchestrator {

// A piece of a tool call. The first piece of a call has its id and name; arguments are pieces of one JSON text.
struct ToolCallDelta {
  int index = 0;
  std::string id;
  std::string name;
  std::string arguments;
};

struct TokenChance {
  std::string bytes;  // of the token, not always whole characters
  float logprob = 0;
  int32_t id = -1;
};

// One generated token as the model saw it, for `logprobs` and `token_stats`; for `token_ids` without its figures.
struct TokenInfo {
  TokenChance token;
  std::vector<TokenChance> top = {};  // best first
  float entropy = 0;                  // nats
  float certainty = 0;                // 0 to 1 (sampling/certainty.h)
  bool was_guessed = false;           // ahead, and computed with the token before it
};

// A passage, or a note of the one who asked, that took part in an answer.
struct UsedPassage {
  std::string source;
  std::string text;
  float score = 0;    // cosine with the question; of a note the part of the question that it covers
  uint64_t note = 0;  // its id; 0: a passage
};

// A place of an answer that names one of the texts it was given: [2].
struct Citation {
  size_t begin = 0, end = 0;  // characters of the content
  std::string title;
  std::string url;       // of a page
  std::string document;  // of a file; one of the two is empty
};

// How much of a prompt is read.
struct PromptProgress {
  int32_t total = 0;
  int32_t cached = 0;  // of these, those that were not computed again
  int32_t read = 0;    // the cached ones among them
};

// What the engine took for an answer, or for a part of one, and when it was over.
struct ModelTime {
  std::chrono::steady_clock::time_point end{};
  engine::Usage usage;
};

// A step of a run that asks the model several times, or others beside it.
struct StepReport {
  enum class State { running, asks, done, failed, skipped };
  int index = 0;      // of the run; a step is told of again when its state changes
  std::string stage;  // "route", "tool", ...
  State state = State::running;
  std::string about;  // one line for a person: what, or why not
  std::chrono::steady_clock::time_point began{};
  double ms = 0;
  int32_t tokens = 0;              // generated for it
  std::string detail;              // a JSON object of the stage's own; empty: none
  std::vector<ModelTime> answers;  // of the model, for it
};

struct RunReport {
  std::string id;
  std::string route;
  std::string mode;               // empty: none was asked for
  std::vector<StepReport> steps;  // finished, failed: all of them
};

enum class Finish { stop, length, tool_calls, cancelled, loop };
inline const char* finish_name(Finish finish) {
  switch (finish) {
    case Finish::stop: return "stop";
    case Finish::length: return "length";
    case Finish::tool_calls: return "tool_calls";
    case Finish::cancelled: return "cancelled";
    case Finish::loop: return "loop";
  }
  return "stop";
}

// A stream is `started`, any number of `delta`, then one of `finished` and `failed`; a request that can not run is
// `failed` alone.
struct ChatChunk {
  enum class Kind { started, delta, finished, failed };
  Kind kind = Kind::delta;

  std::string reasoning;  // delta
  std::string content;
  std::vector<ToolCallDelta> tool_calls;
  std::vector<TokenInfo> tokens;           // when asked for
  std::optional<PromptProgress> progress;  // the latest, when asked for
  std::vector<StepReport> steps;           // of a run: those that changed

  int32_t answer_limit = -1;          // started: tokens behind the thought, where the service set a limit
  Finish finish = Finish::stop;       // finished
  std::string stop_text;              // finished: the stop string that ended the answer, if one did
  engine::Usage usage;                // finished and failed; of `started` only prompt_tokens
  std::vector<UsedPassage> passages;  // finished
  std::vector<Citation> citations;    // finished
  std::string prompt;                 // finished: the text the model was given, when asked for
  std::optional<RunReport> run;       // of a run: started, finished, failed
  std::optional<Error> error;         // failed
  bool is_too_long = false;           // failed: the prompt (usage.prompt_tokens) does not fit into the context

  bool is_terminal() const { return kind == Kind::finished || kind == Kind::failed; }
};

}  // namespace chimere::orchestrator
