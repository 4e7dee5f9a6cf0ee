// openai_responses_tools.h  The tools of /v1/responses. The model knows functions alone; tools of other forms are shown
// to it as functions, and its calls go back in the form that the client declared.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "chat/message.h"
#include "server/protocols/shared/json_fields.h"

namespace chimere::server {

struct ResponseTool {
  enum class Kind {
    function,  // arguments are a JSON object
    custom,    // its input is a text, the argument `input` of the function
    search,    // `tool_search`: the client looks for further tools and brings them in the next request
  };
  Kind kind = Kind::function;
  std::string space;  // the namespace it stands in; empty: none
  std::string name;   // in that namespace
};

// By the name that the model knows.
using ResponseTools = std::map<std::string, ResponseTool>;

// "mail" and "send" are "mail__send".
std::string flat_name(std::string_view space, std::string_view name);

// Reads declarations (`list`, an array at the path `name`) and appends functions to `functions`. Tools that nothing
// here can run go to `ignored` by their path.
void read_response_tools(JsonFields& fields, const std::string& name, const Json& list,
                         std::vector<chat::Tool>& functions, ResponseTools& tools, std::vector<std::string>& ignored);

// Reads the text of a custom tool's input while its arguments, {"input": TEXT}, are being written.
class CustomInput {
 public:
  // `arguments` goes on where the last one ended. Returns the text that it adds.
  std::string push(std::string_view arguments);
  // All of it, when nothing more comes.
  std::string text() const;

 private:
  std::string arguments_;
  size_t read_ = 0;       // bytes of `arguments_` whose text was given out
  bool is_over_ = false;  // the text is complete, or can not be read before the arguments are
};

}  // namespace chimere::server
