// named_templates.h  Templates by the names that llama.cpp gives them, for files without one of their own.
#pragma once

#include <string>
#include <string_view>

namespace chimere::chat {

// Jinja; empty when nothing is called so.
std::string_view named_template(std::string_view name);
// "chatml, command-r, ..."
std::string template_names();

}  // namespace chimere::chat
