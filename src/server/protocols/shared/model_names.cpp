// model_names.cpp  Names and patterns of them.
#include "server/protocols/shared/model_names.h"

#include <algorithm>

namespace chimere::server {
namespace {

constexpr size_t kMaxAliasBytes = 256;
constexpr size_t kMaxShownBytes = 128;

}  // namespace

std::string model_header(std::string_view name) {
  std::string value(name.substr(0, kMaxShownBytes));
  for (char& c : value) c = c >= ' ' && c <= '~' ? c : '?';
  return value;
}

ModelNames named(std::string chat, std::string embedder, std::vector<std::string> aliases) {
  const auto plain = std::find_if(aliases.begin(), aliases.end(),
                                  [](const std::string& alias) { return alias.find('*') == std::string::npos; });
  ModelNames names;
  names.chat = plain == aliases.end() ? chat : *plain;
  if (names.chat != chat) names.own_name = std::move(chat);
  names.embedder = std::move(embedder);
  names.aliases = std::move(aliases);
  return names;
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
  // Behind the last star that was met, and the text it has not taken yet: a star takes one character more whenever what
  // follows it does not fit.
  size_t star = std::string_view::npos, taken = 0, p = 0, t = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool ModelNames::is_alias(std::string_view asked) const {
  return (!own_name.empty() && asked == own_name) ||
         std::any_of(aliases.begin(), aliases.end(),
                     [&](const std::string& alias) { return matches_pattern(alias, asked); });
}

std::string ModelNames::list() const {
  std::string names = "'" + chat + "'";
  if (!embedder.empty()) names += ", '" + embedder + "' (embeddings)";
  for (const std::string& alias : aliases) names += ", '" + alias + "'";
  return names;
}

bool ModelNames::embeds_by_chat(std::string_view asked) const {
  return embedder.empty() || (chat_embeds && asked != embedder && (asked == chat || is_alias(asked)));
}

std::optional<ApiError> ModelNames::refuse_to_embed(std::string_view asked) const {
  if (chat_embeds && embeds_by_chat(asked)) return std::nullopt;
  return refuse(asked, embedder.empty() ? chat : embedder);
}

std::optional<ApiError> ModelNames::refuse(std::string_view asked, const std::string& answering) const {
  if (asked.empty() || asked == answering || is_alias(asked)) return std::nullopt;
  const bool is_other = !embedder.empty() && (asked == chat || asked == embedder);
  if (!is_other && !is_strict) return std::nullopt;
  std::string message = "model: expected '" + answering + "', found '" + std::string(asked.substr(0, kMaxShownBytes)) +
                        "': the names of this server are " + list();
  if (!is_other) message += "; `chimere serve --alias NAME` adds one";
  return ApiError{404, message, "invalid_request_error", "model", "model_not_found"};
}

Result<std::vector<std::string>> parse_aliases(const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      const std::string name = list.substr(begin, end - begin);
      const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
      if (name.empty() || name.size() > kMaxAliasBytes || !is_plain) {
        return Error{Code::invalid_argument, "--alias '" + list +
                                                 "': expected names of 1 to 256 printable characters without spaces, "
                                                 "joined by commas"};
      }
      names.push_back(name);
      begin = end + 1;
    }
  }
  return names;
}

}  // namespace chimere::server
