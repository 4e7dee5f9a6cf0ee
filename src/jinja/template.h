// template.h  A chat template: parse once, render many times.
//
// The language and its semantics are those of Python's jinja2 as Hugging Face sets it up: immutable sandbox,
// trim_blocks, lstrip_blocks, loop controls, the `generation` tag, json.dumps as `tojson`, raise_exception and
// strftime_now. Templates come from model files and are hostile input: every resource they could use up has a limit.
#pragma once

#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jinja/parser.h"
#include "jinja/value.h"

namespace chimere::jinja {

struct Limits {
  size_t max_output_bytes = size_t{64} << 20;
  size_t max_value_bytes = size_t{64} << 20;  // one string or list
  size_t max_live_bytes = size_t{256} << 20;  // all values of a render together
  uint64_t max_steps = 50'000'000;            // evaluated nodes, and bytes handled / 64
  int max_depth = 600;                        // nested evaluation: macros, loops, expressions
  int max_value_depth = 128;                  // lists in lists
  std::chrono::milliseconds max_time{10'000};
};

// Local time for strftime_now; injected so that tests and captures can freeze it.
using Clock = std::function<std::tm()>;
Clock system_clock();

struct Rendered {
  std::string text;
  std::vector<Span> spans;  // cover the text; neighbours differ in is_input
};

class Template {
 public:
  static Result<Template> parse(std::string_view source, const ParseLimits& limits = {});

  // `globals` is a dict Value: the variables of the template. `n_steps` is told what it took, also when it failed.
  // Thread-safe.
  Result<Rendered> render(const Value& globals, const Limits& limits, const Clock& clock,
                          uint64_t* n_steps = nullptr) const;

 private:
  explicit Template(Program program) : program_(std::make_shared<const Program>(std::move(program))) {}
  std::shared_ptr<const Program> program_;
};

}  // namespace chimere::jinja
