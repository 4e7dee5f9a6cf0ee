// main.cpp  The chimere program: picks a sub-command.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "commands.h"
#include "usage.h"
#include "version.h"

int main(int argc, char** argv) {
#if defined(__GLIBC__)
  // Large blocks (sequence state, activations) go back to the system when freed. Left alone, glibc raises this limit to
  // the size of the largest block freed so far and keeps such memory.
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
#endif
  CLI::App app(
      "Chimère serves hybrid state-space + mixture-of-experts language models on hardware people own.\n\n"
      "  chimere serve MODEL.gguf        an OpenAI-compatible server on 127.0.0.1:8081\n"
      "  chimere chat MODEL.gguf         talk to a model in the terminal\n"
      "  chimere inspect MODEL.gguf      what is in a file, and what it needs\n"
      "  chimere plan MODEL.gguf         where it would go on this machine, and how fast it would be\n"
      "  chimere bench --synthetic qwen3.5-tiny   how fast this machine is, without a model",
      "chimere");
  app.set_version_flag("--version", chimere::apps::version_text());
  app.require_subcommand(1);
  chimere::apps::Outcome outcome;
  chimere::apps::add_serve(app, outcome);
  chimere::apps::add_chat(app, outcome);
  chimere::apps::add_top(app, outcome);
  chimere::apps::add_index(app, outcome);
  chimere::apps::add_mcp(app, outcome);
  chimere::apps::add_inspect(app, outcome);
  chimere::apps::add_plan(app, outcome);
  chimere::apps::add_doctor(app, outcome);
  chimere::apps::add_convert(app, outcome);
  chimere::apps::add_quantize(app, outcome);
  chimere::apps::add_imatrix(app, outcome);
  chimere::apps::add_keys(app, outcome);
  chimere::apps::add_config(app, outcome);
  chimere::apps::add_completion(app, outcome);
  chimere::apps::add_cache(app, outcome);
  chimere::apps::add_bench(app, outcome);
  chimere::apps::add_report(app, outcome);
  chimere::apps::add_tokenize(app, outcome);
  chimere::apps::add_logits(app, outcome);
  chimere::apps::add_perplexity(app, outcome);
  chimere::apps::add_engram(app, outcome);
  chimere::apps::add_improve(app, outcome);
  chimere::apps::add_eval(app, outcome);
  chimere::apps::spell_out(argc, argv);
  std::vector<std::string> words(argv, argv + argc);
  if (int code = chimere::apps::translate_command(words); code != 0) return code;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  argc = static_cast<int>(pointers.size());
  argv = pointers.data();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return chimere::apps::explain_usage(app, e, argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "chimere: %s\n", e.what());
    return 1;
  }
  return outcome.code;
}
