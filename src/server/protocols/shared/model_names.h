// model_names.h  Which model a request means. Programs send names of their own ("claude-..."), so the one model that
// can do what is asked answers to any name; which one answered is said in the answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http/api_error.h"

namespace chimere::server {

struct ModelNames {
  std::string chat;                  // the model that generates
  std::string own_name = {};         // what its file calls it, where it is shown by another name
  std::string embedder;              // the one that embeds; empty: the same
  bool chat_embeds = false;          // where another embeds: so does the model that generates, asked by its own names
  std::vector<std::string> aliases;  // further names; `*` in one stands for any text
  bool is_strict = false;            // no other name is answered

  // Why a request for `asked` ("" when it named none) is not answered by the model that generates, or the one that
  // embeds: it names the other one, or the server is strict and it is neither the model's name nor an alias.
  std::optional<ApiError> refuse_to_chat(std::string_view asked) const { return refuse(asked, chat); }
  std::optional<ApiError> refuse_to_embed(std::string_view asked) const;
  bool is_alias(std::string_view asked) const;
  // Whether vectors are asked of the model that generates.
  bool embeds_by_chat(std::string_view asked) const;
  // "'a', 'b'"
  std::string list() const;

 private:
  std::optional<ApiError> refuse(std::string_view asked, const std::string& answering) const;
};

// Names of a model: the first alias that is no pattern is the one it is shown by.
ModelNames named(std::string chat, std::string embedder, std::vector<std::string> aliases);

// A name as the value of X-Chimere-Model, which has printable ASCII alone.
std::string model_header(std::string_view name);

// `*` stands for any text, also none.
bool matches_pattern(std::string_view pattern, std::string_view text);

// "a,b*" into its names; an error when one is empty, too long or no plain text.
Result<std::vector<std::string>> parse_aliases(const std::vector<std::string>& lists);

}  // namespace chimere::server
