#include "speculate.h"

namespace chimere::apps {

void add_speculate_options(CLI::App& command, SpeculateOptions& o) {
  const std::string group = "Speculation (no guess changes an answer; docs/speculation.md)";
  command
      .add_option_function<std::string>(
          "--speculate", [&o](const std::string& name) { o.mode = *speculative::mode_from_text(name); },
          "guess the next tokens and compute them together: auto, where it pays; off; ngram, from repeats of the text "
          "alone; mtp, from the model's MTP block alone; always")
      ->check(CLI::IsMember({"auto", "off", "ngram", "mtp", "always"}))
      ->default_str(speculative::name(o.mode))
      ->group(group);
  command.add_option("--draft-max", o.draft_max, "guesses of one answer in a step, at most")
      ->check(CLI::Range(1, kDecodeTokens - 1))
      ->capture_default_str()
      ->group(group);
}

}  // namespace chimere::apps
