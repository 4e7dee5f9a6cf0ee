#include "thinking.h"

#include "common.h"

namespace chimere::apps {

void add_thinking_options(CLI::App& command, orchestrator::ThinkingOptions& o) {
  const std::string group = "Thinking (a request may say otherwise; docs/thinking.md)";
  const CLI::Range certainty(0.0, 2.0);
  const auto add = [&](const char* name, auto& value, const char* text) {
    return command.add_option(name, value, text)->group(group);
  };
  command
      .add_option_function<std::string>(
          "--thinking-mode", [&o](const std::string& name) { o.mode = orchestrator::thinking_mode(name); },
          "off, fast: end a thought as soon as it is sure, quality: when it is very sure, ultra: never")
      ->check(CLI::IsMember({"off", "fast", "quality", "ultra"}))
      ->group(group);
  add("--thinking-window", o.window, "tokens that certainty is taken over")->check(CLI::Range(1, 1024));
  add("--thinking-min", o.min_tokens, "tokens of a thought before it is ended for certainty")->check(at_least(0));
  add("--thinking-close-above", o.close_above, "certainty that ends a thought; above 1: none")->check(certainty);
  add("--thinking-extend-below", o.extend_below, "certainty below which the model's own end is not accepted")
      ->check(certainty);
  add("--thinking-extensions", o.max_extensions, "how often at most")->check(CLI::Range(0, 64));
  add("--thinking-extension", o.extension, "phrase that is written instead of that end");
  add("--thinking-warning", o.warning, "phrase that says that the budget runs out");
  add("--thinking-warn-before", o.warn_before, "tokens of the budget behind the warning; 0: no warning")
      ->check(at_least(0));
  add("--thinking-answer-tokens", o.answer_tokens, "of the tokens of an answer, those that a thought leaves")
      ->check(at_least(0));
  add("--thinking-suppress-above", o.suppress_above,
      "certainty from which words of reflection can not be drawn; above 1: never")
      ->check(certainty);
  add("--thinking-release-below", o.release_below, "certainty below which they can again")->check(certainty);
  add("--thinking-close-at-reflection", o.close_at_reflection,
      "true or false: instead, a sentence that begins with such a word ends the thought");
  add("--thinking-triggers", o.triggers, "the words; those of several languages when absent");
  add("--loop-guard", o.loop_guard, "true or false: make repetitions unlikely, then end them");
  add("--loop-tokens", o.loop_tokens, "tokens of a repetition before it counts as a loop")->check(CLI::Range(4, 4096));
  add("--loop-penalty", o.loop_penalty, "taken from the logit of what goes on with a loop")
      ->check(CLI::Range(0.0, 100.0));
}

}  // namespace chimere::apps
