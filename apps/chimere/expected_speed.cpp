#include "expected_speed.h"

#include <utility>

#include "engine/expectation.h"
#include "machine_file.h"

namespace chimere::apps {

void expect_speed(LoadOptions& options, bool chooses, std::shared_ptr<std::string> said) {
  auto machine = kept_machine();
  if (!machine) return;
  options.before_load = [machine = std::move(*machine), chooses, said](const Program& program, const LoadOptions& o,
                                                                       bool on_card) -> Status {
    said->clear();
    const auto found = engine::expected(program, o, on_card, machine);
    if (!found) return Ok{};
    if (on_card && chooses) {
      const auto cpu = engine::expected(program, o, false, machine);
      const std::string why = cpu ? engine::better_on_cpu(*found, *cpu) : "";
      if (!why.empty()) return Error{Code::exhausted, why};
    }
    *said = engine::expectation_text(*found);
    return Ok{};
  };
}

}  // namespace chimere::apps
