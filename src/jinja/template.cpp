// template.cpp  Parse and render.
#include "jinja/template.h"

#include "jinja/eval.h"

namespace chimere::jinja {

Clock system_clock() {
  return [] {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    return local;
  };
}

Result<Template> Template::parse(std::string_view source, const ParseLimits& limits) {
  TRY_ASSIGN(Program program, jinja::parse(source, limits));
  return Template(std::move(program));
}

Result<Rendered> Template::render(const Value& globals, const Limits& limits, const Clock& clock,
                                  uint64_t* n_steps) const {
  Interpreter interpreter(*program_, globals, limits, clock);
  Result<Text> ran = interpreter.run();
  if (n_steps) *n_steps = interpreter.n_steps();
  TRY_ASSIGN(Text text, std::move(ran));
  Rendered rendered;
  rendered.spans = text.spans();
  rendered.text = std::move(text).take_bytes();
  return rendered;
}

}  // namespace chimere::jinja
