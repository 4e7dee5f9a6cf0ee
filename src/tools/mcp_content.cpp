#include "tools/mcp_content.h"

#include "tools/arguments.h"
#include "tools/toolbox.h"

namespace chimere::tools {
namespace {

constexpr size_t kMaxToolName = 64;

// Bytes that base64 stands for, near enough to be told.
std::string size_of_base64(const Json& object, const char* name) {
  return std::to_string(text_argument(object, name).size() / 4 * 3) + " bytes";
}

std::string shown_block(const Json& block) {
  const std::string type = text_argument(block, "type");
  const std::string kind = text_argument(block, "mimeType");
  if (type == "text") return text_argument(block, "text");
  if (type == "image" || type == "audio") return "[" + type + ": " + kind + ", " + size_of_base64(block, "data") + "]";
  if (type == "resource_link") {
    return "[link: " + text_argument(block, "name") + " " + text_argument(block, "uri") + "]";
  }
  const auto resource = block.find("resource");
  if (type == "resource" && resource != block.end() && resource->is_object()) {
    const std::string address = text_argument(*resource, "uri");
    if (resource->contains("text")) return "[resource: " + address + "]\n" + text_argument(*resource, "text");
    return "[resource: " + address + ", " + text_argument(*resource, "mimeType") + ", " +
           size_of_base64(*resource, "blob") + "]";
  }
  return "[content of an unknown type '" + type.substr(0, 64) + "']";
}

}  // namespace

std::string mcp_tool_name(const std::string& server, const std::string& tool, const std::set<std::string>& taken) {
  std::string name = server + "__" + tool;
  for (char& c : name) {
    if (!is_tool_name(std::string_view(&c, 1))) c = '_';
  }
  name.resize(std::min(name.size(), kMaxToolName));
  std::string different = name;
  for (int i = 2; taken.count(different) != 0; ++i) {
    const std::string ending = "_" + std::to_string(i);
    different = name.substr(0, kMaxToolName - ending.size()) + ending;
  }
  return different;
}

ToolResult mcp_result(const Json& result) {
  ToolResult shown{"", false, true};
  if (!result.is_object()) return ToolResult{"the server's result is no object", true, true};
  const auto is_error = result.find("isError");
  shown.is_error = is_error != result.end() && is_error->is_boolean() && is_error->get<bool>();
  const auto content = result.find("content");
  if (content != result.end() && content->is_array()) {
    for (const Json& block : *content) {
      if (!shown.text.empty()) shown.text += '\n';
      shown.text += block.is_object() ? shown_block(block) : "[content that is no object]";
      if (shown.text.size() > kMaxResultBytes) break;
    }
  }
  // The same in another form, for servers that give nothing else.
  const auto structured = result.find("structuredContent");
  if (shown.text.empty() && structured != result.end()) shown.text = to_text(*structured);
  if (shown.text.empty()) shown.text = "[no content]";
  return shown;
}

}  // namespace chimere::tools
