// openai_input_items.cpp  Pages of items, in the form that OpenAI lists them in.
#include "server/protocols/openai_input_items.h"

#include <algorithm>
#include <charconv>

#include "server/http/http.h"
#include "server/http/json.h"

namespace chimere::server {
namespace {

constexpr size_t kMaxItemsListed = 100;

std::string id_at(const std::vector<KeptResponses::Item>& items, const std::string& response_id, size_t i) {
  return items[i].id.empty() ? "item_" + response_id + "_" + std::to_string(i) : items[i].id;
}

// A message may have come without its type, and with its text alone.
Json listed(const KeptResponses::Item& item, std::string id) {
  auto parsed = parse_json(item.json);
  Json json = parsed && parsed->is_object() ? std::move(*parsed) : Json::object();
  json["id"] = std::move(id);
  if (!json.contains("type")) json["type"] = "message";
  if (json["type"] != "message") return json;
  if (!json.contains("status")) json["status"] = "completed";
  if (json.contains("content") && json["content"].is_string()) {
    const char* type = json.value("role", Json()) == "assistant" ? "output_text" : "input_text";
    Json part{{"type", type}, {"text", json["content"]}};
    json["content"] = Json::array({std::move(part)});
  }
  return json;
}

}  // namespace

std::variant<ItemsQuery, ApiError> parse_items_query(std::string_view query) {
  ItemsQuery asked;
  for (auto& [name, value] : query_fields(query)) {
    if (name == "limit") {
      const char* end = value.data() + value.size();
      const auto read = std::from_chars(value.data(), end, asked.limit);
      if (read.ec != std::errc() || read.ptr != end || asked.limit < 1 || asked.limit > kMaxItemsListed) {
        return ApiError{400, "limit: expected 1 to " + std::to_string(kMaxItemsListed), "invalid_request_error",
                        "limit", ""};
      }
    } else if (name == "order") {
      if (value != "asc" && value != "desc") {
        return ApiError{400, "order: expected asc or desc", "invalid_request_error", "order", ""};
      }
      asked.newest_first = value == "desc";
    } else if (name == "after") {
      asked.after = std::move(value);
    } else {
      asked.ignored.push_back(std::move(name));
    }
  }
  return asked;
}

Result<std::string> items_text(const std::vector<KeptResponses::Item>& items, const std::string& response_id,
                               const ItemsQuery& query) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = query.newest_first ? order.size() - 1 - i : i;
  auto begin = order.begin();
  if (!query.after.empty()) {
    begin = std::find_if(begin, order.end(), [&](size_t i) { return id_at(items, response_id, i) == query.after; });
    if (begin == order.end()) return Error{Code::invalid_argument, "after: expected the id of an item of the response"};
    ++begin;
  }
  const size_t n_left = static_cast<size_t>(order.end() - begin);
  const auto end = begin + static_cast<std::ptrdiff_t>(std::min(n_left, query.limit));
  Json list{{"object", "list"}, {"data", Json::array()}};
  for (auto at = begin; at != end; ++at) {
    list["data"].push_back(listed(items[*at], id_at(items, response_id, *at)));
  }
  list["first_id"] = begin == end ? Json(nullptr) : list["data"].front()["id"];
  list["last_id"] = begin == end ? Json(nullptr) : list["data"].back()["id"];
  list["has_more"] = end != order.end();
  return to_text(list);
}

}  // namespace chimere::server
