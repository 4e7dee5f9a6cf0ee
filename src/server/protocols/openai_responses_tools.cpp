// openai_responses_tools.cpp  Declarations to functions, and the text inside arguments.
#include "server/protocols/openai_responses_tools.h"

#include <utility>

#include "chat/json_stream.h"
#include "server/protocols/shared/conversation_fields.h"

namespace chimere::server {
namespace {

constexpr std::string_view kInputHead = R"({"input":")";

Json text_parameters() {
  return Json{{"type", "object"},
              {"properties", Json{{"input", Json{{"type", "string"}}}}},
              {"required", Json::array({"input"})},
              {"additionalProperties", false}};
}

// What a custom tool says of itself and of the form of its input. The form is told, not enforced.
std::string custom_description(const Json& tool) {
  const Json said = tool.value("description", Json());
  std::string text = said.is_string() ? said.get<std::string>() : std::string();
  const Json format = tool.value("format", Json());
  const Json definition = format.is_object() ? format.value("definition", Json()) : Json();
  if (definition.is_string()) text += "\n\nThe input follows this grammar:\n" + definition.get<std::string>();
  return text;
}

class ToolReader {
 public:
  ToolReader(JsonFields& fields, std::vector<chat::Tool>& functions, ResponseTools& tools,
             std::vector<std::string>& ignored)
      : fields_(fields), functions_(functions), tools_(tools), ignored_(ignored) {}

  void read_list(const std::string& path, const Json& list, const std::string& space) {
    for (size_t i = 0; i < list.size() && fields_.ok(); ++i) {
      const std::string name = path_at(path, i);
      if (!list[i].is_object()) return fields_.fail_type(name, "an object", list[i]);
      read(name, list[i], space);
    }
  }

 private:
  void read(const std::string& path, const Json& tool, const std::string& space) {
    const Json type = tool.value("type", Json());
    if (type == "function") {
      fields_.check_keys(path, tool, {"type", "name", "description", "parameters", "strict", "defer_loading"});
      add(path, tool, space, ResponseTool::Kind::function, tool.value("parameters", Json()),
          tool.value("description", Json()));
    } else if (type == "custom") {
      fields_.check_keys(path, tool, {"type", "name", "description", "format", "defer_loading"});
      add(path, tool, space, ResponseTool::Kind::custom, text_parameters(), custom_description(tool));
    } else if (type == "namespace" && space.empty()) {
      const Json name = tool.value("name", Json());
      const Json inner = tool.value("tools", Json());
      if (!name.is_string()) return fields_.fail(path + ".name", "expected a string");
      if (!inner.is_array()) return fields_.fail_type(path + ".tools", "an array", inner);
      fields_.check_keys(path, tool, {"type", "name", "description", "tools"});
      read_list(path + ".tools", inner, name.get<std::string>());
    } else if (type == "tool_search" && tool.value("execution", Json()) == "client" && space.empty()) {
      fields_.check_keys(path, tool, {"type", "execution", "description", "parameters"});
      Json named = tool;
      named["name"] = "tool_search";
      add(path, named, space, ResponseTool::Kind::search, tool.value("parameters", Json()),
          tool.value("description", Json()));
    } else {
      ignored_.push_back(path);  // tools that OpenAI's own machines run
    }
  }

  void add(const std::string& path, const Json& tool, const std::string& space, ResponseTool::Kind kind,
           const Json& parameters, const Json& description) {
    const Json name = tool.value("name", Json());
    if (!name.is_string()) return fields_.fail(path + ".name", "expected a string");
    if (functions_.size() >= kMaxTools) {
      return fields_.fail("tools", "expected at most " + std::to_string(kMaxTools) + ", found more");
    }
    const std::string flat = flat_name(space, name.get<std::string>());
    if (!space.empty() || kind != ResponseTool::Kind::function) tools_[flat] = {kind, space, name.get<std::string>()};
    Json function;
    function["name"] = flat;
    if (description.is_string()) function["description"] = description;
    function["parameters"] =
        parameters.is_object() ? parameters : Json{{"type", "object"}, {"properties", Json::object()}};
    functions_.push_back({to_text(Json{{"type", "function"}, {"function", std::move(function)}})});
  }

  JsonFields& fields_;
  std::vector<chat::Tool>& functions_;
  ResponseTools& tools_;
  std::vector<std::string>& ignored_;
};

}  // namespace

std::string flat_name(std::string_view space, std::string_view name) {
  if (space.empty()) return std::string(name);
  return std::string(space) + (space.ends_with("__") ? "" : "__") + std::string(name);
}

void read_response_tools(JsonFields& fields, const std::string& name, const Json& list,
                         std::vector<chat::Tool>& functions, ResponseTools& tools, std::vector<std::string>& ignored) {
  ToolReader(fields, functions, tools, ignored).read_list(name, list, {});
}

std::string CustomInput::push(std::string_view arguments) {
  arguments_ += arguments;
  if (is_over_) return {};
  if (read_ == 0) {
    if (arguments_.size() < kInputHead.size()) return {};
    is_over_ = !arguments_.starts_with(kInputHead);
    if (is_over_) return {};
    read_ = kInputHead.size();
  }
  // Up to the end of the text, or to an escape that is not complete: \n, \u1234, and pairs of the latter.
  size_t end = read_;
  while (end < arguments_.size() && arguments_[end] != '"') {
    size_t length = 1;
    if (arguments_[end] == '\\') {
      const bool is_unicode = end + 1 < arguments_.size() && arguments_[end + 1] == 'u';
      length = is_unicode ? 6 : 2;
      const bool is_high = is_unicode && end + 3 < arguments_.size() && (arguments_[end + 2] | 0x20) == 'd' &&
                           std::string_view("89abAB").find(arguments_[end + 3]) != std::string_view::npos;
      if (is_high) length = 12;
    }
    if (end + length > arguments_.size()) break;
    end += length;
  }
  is_over_ = end < arguments_.size() && arguments_[end] == '"';
  const auto text = parse_json("\"" + arguments_.substr(read_, end - read_) + "\"");
  read_ = end;
  return text && text->is_string() ? text->get<std::string>() : std::string();
}

std::string CustomInput::text() const {
  auto json = parse_json(arguments_);
  if (!json) json = parse_json(chat::closed_json(arguments_));
  const Json input = json && json->is_object() ? json->value("input", Json()) : Json();
  return input.is_string() ? input.get<std::string>() : std::string();
}

}  // namespace chimere::server
