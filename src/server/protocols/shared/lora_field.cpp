#include "server/protocols/shared/lora_field.h"

namespace chimere::server {
namespace {

constexpr size_t kMaxAdapters = 8;
constexpr float kMaxLoraScale = 100;

}  // namespace

void read_lora(JsonFields& fields, std::vector<orchestrator::AdapterUse>& uses) {
  const Json* json = fields.find("lora");
  if (!json) return;
  const Json list = json->is_array() ? *json : Json::array({*json});
  if (list.size() > kMaxAdapters) {
    fields.fail("lora", "expected at most " + std::to_string(kMaxAdapters) + ", found " + std::to_string(list.size()));
    return;
  }
  for (size_t i = 0; i < list.size() && fields.ok(); ++i) {
    orchestrator::AdapterUse use;
    if (list[i].is_string()) {
      use.name = list[i].get<std::string>();
    } else if (list[i].is_object()) {
      JsonFields inner(list[i], "lora[" + std::to_string(i) + "].");
      inner.string("name", use.name);
      if (inner.find("scale")) {
        float scale = 1;
        inner.number("scale", scale, -kMaxLoraScale, kMaxLoraScale);
        use.scale = scale;
      }
      fields.take_error(inner);
    } else {
      fields.fail_type("lora", "a name, an object with name and scale, or a list of these", list[i]);
    }
    if (use.name.empty()) fields.fail("lora", "expected the name of an adapter, found none");
    uses.push_back(std::move(use));
  }
}

}  // namespace chimere::server
