// smollm3_rules.cpp  SmolLM3: named like a Llama; every fourth layer has no positions.
#include "convert/rules.h"

namespace chimere::convert {

void llama_rules(Recipe&);

void smollm3_rules(Recipe& r) {
  const std::vector<int64_t> rotated = r.integers("no_rope_layers");  // 1: the layer does have them
  for (size_t i = 0; i < rotated.size(); ++i) {
    // The file has no place for another pattern.
    if ((rotated[i] != 0) == ((i + 1) % 4 != 0)) continue;
    return r.fail(Code::unsupported, "config.json: no_rope_layers: expected 0 at every fourth layer alone, found " +
                                         std::to_string(rotated[i]) + " at layer " + std::to_string(i));
  }
  llama_rules(r);
}

}  // namespace chimere::convert
