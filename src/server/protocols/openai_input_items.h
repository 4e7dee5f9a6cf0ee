// openai_input_items.h  /v1/responses/{id}/input_items: what a kept answer was made from, page by page.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "server/http/api_error.h"
#include "server/protocols/kept_responses.h"

namespace chimere::server {

struct ItemsQuery {
  size_t limit = 20;
  bool newest_first = true;  // order=desc
  std::string after;         // the id of the last item of the page before; empty: from the start
  std::vector<std::string> ignored;
};

std::variant<ItemsQuery, ApiError> parse_items_query(std::string_view query);

// {"object": "list", "data", "first_id", "last_id", "has_more"}; invalid_argument when no item has the id `after`. Items
// that came without an id get one of the response's id and their place.
Result<std::string> items_text(const std::vector<KeptResponses::Item>& items, const std::string& response_id,
                               const ItemsQuery& query);

}  // namespace chimere::server
