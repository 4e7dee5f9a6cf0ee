// sequence_filters.cpp  Filters on lists, mappings and other iterables.
#include <algorithm>
#include <unordered_map>

#include "jinja/builtins.h"
#include "jinja/strings.h"

namespace chimere::jinja {
namespace {

bool given(const Value& v) { return !v.is_missing(); }
bool present(const Value& v) { return !v.is_missing() && !v.is_none(); }

// "a.b.0" looked up step by step; integers index.
Result<Value> get_path(Interpreter& in, Value item, const Value& path, const Value& fallback = Value::missing()) {
  if (!present(path)) return item;
  if (!path.is_string()) {
    TRY_ASSIGN(item, in.get_item(item, path));
    if (present(fallback) && item.is_undefined()) item = fallback;
    return item;
  }
  for (const Text& part : split(path.text(), ".", -1)) {
    const bool is_index =
        !part.empty() && part.size() < 10 && part.bytes().find_first_not_of("0123456789") == std::string::npos;
    Value key;
    if (is_index) {
      key = Value(static_cast<int64_t>(std::stoll(part.bytes())));
    } else {
      TRY_ASSIGN(key, in.string(part));
    }
    TRY_ASSIGN(item, in.get_item(item, key));
    if (present(fallback) && item.is_undefined()) item = fallback;
  }
  return item;
}

Result<Value> ignore_case(Interpreter& in, Value v) {
  if (!v.is_string()) return v;
  TRY(in.check_bytes(v.text().size()));
  return in.string(lower(v.text()));
}

Result<std::vector<Value>> sort_keys(Interpreter& in, const std::vector<Value>& items, const Value& path,
                                     bool case_sensitive) {
  std::vector<Value> keys;
  keys.reserve(items.size());
  for (const Value& item : items) {
    TRY_ASSIGN(Value key, get_path(in, item, path));
    if (!case_sensitive) {
      TRY_ASSIGN(key, ignore_case(in, std::move(key)));
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

// Stable merge sort of positions by key. (std::stable_sort cannot carry an error out of the comparison.)
Status merge_sort(Interpreter& in, const std::vector<Value>& keys, std::vector<size_t>& order) {
  std::vector<size_t> scratch(order.size());
  for (size_t width = 1; width < order.size(); width *= 2) {
    for (size_t low = 0; low < order.size(); low += 2 * width) {
      const size_t middle = std::min(low + width, order.size()), high = std::min(low + 2 * width, order.size());
      size_t a = low, b = middle;
      for (size_t out = low; out < high; ++out) {
        bool take_right = a >= middle;
        if (a < middle && b < high) {
          TRY_ASSIGN(take_right, in.less(keys[order[b]], keys[order[a]], CompareOp::lt));
        }
        scratch[out] = take_right ? order[b++] : order[a++];
      }
    }
    order.swap(scratch);
  }
  return Ok{};
}

Result<std::vector<Value>> sorted(Interpreter& in, const std::vector<Value>& items, const std::vector<Value>& keys,
                                  bool reverse) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = reverse ? order.size() - 1 - i : i;
  TRY(merge_sort(in, keys, order));
  if (reverse) std::reverse(order.begin(), order.end());
  std::vector<Value> result;
  result.reserve(items.size());
  for (const size_t i : order) result.push_back(items[i]);
  return result;
}

Result<Value> filter_length(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("length", args, {}, 0, nullptr));
  TRY_ASSIGN(const int64_t n, in.length(value));
  return Value(n);
}

Result<Value> filter_list(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("list", args, {}, 0, nullptr));
  TRY_ASSIGN(std::vector<Value> items, in.iterate(value));
  return in.list(std::move(items));
}

Result<Value> filter_join(Interpreter& in, const Value& value, const CallArgs& args) {
  Value a[2];
  TRY(in.bind("join", args, {"d", "attribute"}, 0, a));
  Text separator;
  if (given(a[0])) {
    TRY_ASSIGN(separator, in.to_text(a[0]));
  }
  TRY_ASSIGN(const std::vector<Value> items, in.iterate(value));
  Text out;
  for (size_t i = 0; i < items.size(); ++i) {
    TRY_ASSIGN(const Value item, get_path(in, items[i], a[1]));
    TRY_ASSIGN(const Text piece, in.to_text(item));
    TRY(in.check_bytes(out.size() + separator.size() + piece.size()));
    if (i) out.append(separator);
    out.append(piece);
  }
  return in.string(std::move(out));
}

Result<Value> filter_first(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("first", args, {}, 0, nullptr));
  if (value.is(Kind::iterator)) {
    auto& iterator = value.as<IteratorObject>();
    if (iterator.pos < iterator.items.size()) return iterator.items[iterator.pos++];
  }
  TRY_ASSIGN(const std::vector<Value> items, in.iterate(value));
  if (items.empty()) return in.undefined("no first item, sequence was empty");
  return items.front();
}

Result<Value> filter_last(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("last", args, {}, 0, nullptr));
  if (value.is(Kind::iterator)) return in.error("'generator' object is not reversible");
  TRY_ASSIGN(const std::vector<Value> items, in.iterate(value));
  if (items.empty()) return in.undefined("no last item, sequence was empty");
  return items.back();
}

Result<Value> filter_reverse(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("reverse", args, {}, 0, nullptr));
  if (value.is_string()) return in.slice(value, Value(), Value(), Value(-1));
  TRY_ASSIGN(std::vector<Value> items, in.iterate(value));
  std::reverse(items.begin(), items.end());
  if (value.is(Kind::iterator)) return in.list(std::move(items));
  return in.iterator(std::move(items), "<reversed object>");
}

Result<Value> filter_items(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("items", args, {}, 0, nullptr));
  std::vector<Value> pairs;
  std::unique_ptr<Error> error;
  if (value.is(Kind::dict)) {
    for (const auto& [key, item] : value.dict().entries) {
      TRY_ASSIGN(Value pair, in.pair(key, item));
      pairs.push_back(std::move(pair));
    }
  } else if (!value.is_undefined()) {
    error = std::make_unique<Error>(in.error("can only get item pairs from a mapping"));
  }
  return in.iterator(std::move(pairs), "<generator object do_items>", std::move(error));
}

Result<Value> filter_dictsort(Interpreter& in, const Value& value, const CallArgs& args) {
  Value a[3];
  TRY(in.bind("dictsort", args, {"case_sensitive", "by", "reverse"}, 0, a));
  if (value.is_undefined()) return in.error(value.as<UndefinedObject>().message);
  if (!value.is(Kind::dict)) return in.error("dictsort needs a mapping");
  const std::string by = a[1].is_string() ? a[1].bytes() : given(a[1]) ? "" : "key";
  if (by != "key" && by != "value") return in.error("dictsort can only sort by \"key\" or \"value\"");
  std::vector<Value> pairs, keys;
  for (const auto& [key, item] : value.dict().entries) {
    TRY_ASSIGN(Value pair, in.pair(key, item));
    pairs.push_back(std::move(pair));
    Value sort_key = by == "key" ? key : item;
    if (!in.truth(a[0])) {
      TRY_ASSIGN(sort_key, ignore_case(in, std::move(sort_key)));
    }
    keys.push_back(std::move(sort_key));
  }
  TRY_ASSIGN(std::vector<Value> result, sorted(in, pairs, keys, in.truth(a[2])));
  return in.list(std::move(result));
}

Result<Value> filter_sort(Interpreter& in, const Value& value, const CallArgs& args) {
  Value a[3];
  TRY(in.bind("sort", args, {"reverse", "case_sensitive", "attribute"}, 0, a));
  TRY_ASSIGN(const std::vector<Value> items, in.iterate(value));
  std::vector<Value> keys;
  if (a[2].is_string() && a[2].bytes().find(',') != std::string::npos) {
    std::vector<std::vector<Value>> columns;
    for (const Text& path : split(a[2].text(), ",", -1)) {
      TRY_ASSIGN(const Value attribute, in.string(path));
      TRY_ASSIGN(std::vector<Value> column, sort_keys(in, items, attribute, in.truth(a[1])));
      columns.push_back(std::move(column));
    }
    for (size_t i = 0; i < items.size(); ++i) {
      std::vector<Value> row;
      for (const auto& column : columns) row.push_back(column[i]);
      TRY_ASSIGN(Value key, in.list(std::move(row)));
      keys.push_back(std::move(key));
    }
  } else {
    TRY_ASSIGN(keys, sort_keys(in, items, a[2], in.truth(a[1])));
  }
  TRY_ASSIGN(std::vector<Value> result, sorted(in, items, keys, in.truth(a[0])));
  return in.list(std::move(result));
}

Result<Value> filter_unique(Interpreter& in, const Value& value, const CallArgs& args) {
  Value a[2];
  TRY(in.bind("unique", args, {"case_sensitive", "attribute"}, 0, a));
  TRY_ASSIGN(const std::vector<Value> items, in.iterate(value));
  TRY_ASSIGN(const std::vector<Value> keys, sort_keys(in, items, a[1], in.truth(a[0])));
  DictObject seen;
  std::vector<Value> result;
  std::unique_ptr<Error> error;
  for (size_t i = 0; i < items.size() && !error; ++i) {
    if (!is_hashable(keys[i])) {
      error = std::make_unique<Error>(in.error(std::string("unhashable type: '") + type_name(keys[i]) + "'"));
      break;
    }
    if (!keys[i].is_string()) TRY(in.tick(seen.entries.size()));
    if (seen.find(keys[i])) continue;
    seen.set(keys[i], Value());
    result.push_back(items[i]);
  }
  return in.iterator(std::move(result), "<generator object do_unique>", std::move(error));
}

template <CompareOp op>
Result<Value> filter_extreme(Interpreter& in, const Value& value, const CallArgs& args) {
  Value a[2];
  TRY(in.bind("min", args, {"case_sensitive", "attribute"}, 0, a));
  TRY_ASSIGN(const std::vector<Value> items, in.iterate(value));
  if (items.empty()) return in.undefined("no aggregated item, sequence was empty");
  TRY_ASSIGN(const std::vector<Value> keys, sort_keys(in, items, a[1], in.truth(a[0])));
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    TRY_ASSIGN(const bool better, in.less(keys[i], keys[best], op));
    if (better) best = i;
  }
  return items[best];
}

Result<Value> filter_sum(Interpreter& in, const Value& value, const CallArgs& args) {
  Value a[2];
  TRY(in.bind("sum", args, {"attribute", "start"}, 0, a));
  TRY_ASSIGN(const std::vector<Value> items, in.iterate(value));
  Value total = given(a[1]) ? a[1] : Value(0);
  if (total.is_string()) return in.error("sum() cannot sum strings");
  for (const Value& item : items) {
    TRY_ASSIGN(const Value term, get_path(in, item, a[0]));
    TRY_ASSIGN(total, in.binary(BinaryOp::add, total, term));
  }
  return total;
}

Result<Value> filter_attr(Interpreter& in, const Value& value, const CallArgs& args) {
  Value name;
  TRY(in.bind("attr", args, {"name"}, 1, &name));
  if (!name.is_string()) return in.error("attr needs the name of an attribute");
  if (value.is(Kind::dict) && !find_method(Kind::dict, name.bytes())) {
    return in.undefined("'dict object' has no attribute '" + name.bytes().substr(0, 100) + "'");
  }
  return in.get_attribute(value, name.bytes());
}

// map and the select family are generators in Python: an error shows only when their items are taken.
Result<Value> filter_map(Interpreter& in, const Value& value, const CallArgs& args) {
  std::vector<Value> results;
  std::unique_ptr<Error> error;
  const auto run = [&]() -> Status {
    if (!in.truth(value)) return Ok{};
    Value attribute = Value::missing(), fallback = Value::missing();
    CallArgs rest = args;
    std::string filter;
    if (args.positional.empty()) {
      for (const auto& [key, argument] : args.keyword) {
        if (key == "attribute") {
          attribute = argument;
        } else if (key == "default") {
          fallback = argument;
        } else {
          return in.error("map got an unexpected keyword argument '" + key + "'");
        }
      }
      if (!given(attribute)) return in.error("map requires a filter argument");
    } else {
      if (!args.positional[0].is_string()) return in.error("map requires the name of a filter");
      filter = args.positional[0].bytes();
      rest.positional.erase(rest.positional.begin());
    }
    TRY_ASSIGN(const std::vector<Value> items, in.iterate(value));
    for (const Value& item : items) {
      Result<Value> mapped =
          given(attribute) ? get_path(in, item, attribute, fallback) : in.apply_filter(filter, item, rest);
      if (!mapped) return std::move(mapped.error());
      results.push_back(std::move(*mapped));
    }
    return Ok{};
  };
  if (Status status = run(); !status) {
    if (status.error().code == Code::exhausted) return std::move(status.error());
    error = std::make_unique<Error>(std::move(status.error()));
  }
  return in.iterator(std::move(results), "<generator object sync_do_map>", std::move(error));
}

template <bool keep_if, bool by_attribute>
Result<Value> filter_select(Interpreter& in, const Value& value, const CallArgs& args) {
  std::vector<Value> results;
  std::unique_ptr<Error> error;
  const auto run = [&]() -> Status {
    if (!in.truth(value)) return Ok{};
    size_t n_used = 0;
    Value attribute = Value::missing();
    if (by_attribute) {
      if (args.positional.empty()) return in.error("missing parameter for attribute name");
      attribute = args.positional[n_used++];
    }
    CallArgs rest;
    rest.keyword = args.keyword;
    std::string test;
    if (n_used < args.positional.size()) {
      if (!args.positional[n_used].is_string()) return in.error("the name of a test must be a string");
      test = args.positional[n_used++].bytes();
      rest.positional.assign(args.positional.begin() + static_cast<std::ptrdiff_t>(n_used), args.positional.end());
    }
    TRY_ASSIGN(const std::vector<Value> items, in.iterate(value));
    for (const Value& item : items) {
      TRY_ASSIGN(const Value subject, get_path(in, item, attribute));
      bool holds = false;
      if (test.empty()) {
        holds = in.truth(subject);
      } else {
        TRY_ASSIGN(const Value result, in.apply_test(test, subject, rest));
        holds = in.truth(result);
      }
      if (holds == keep_if) results.push_back(item);
    }
    return Ok{};
  };
  if (Status status = run(); !status) {
    if (status.error().code == Code::exhausted) return std::move(status.error());
    error = std::make_unique<Error>(std::move(status.error()));
  }
  return in.iterator(std::move(results), "<generator object select_or_reject>", std::move(error));
}

}  // namespace

Builtin find_sequence_filter(std::string_view name) {
  static const std::unordered_map<std::string_view, Builtin> kFilters = {
      {"length", filter_length},
      {"count", filter_length},
      {"list", filter_list},
      {"join", filter_join},
      {"first", filter_first},
      {"last", filter_last},
      {"reverse", filter_reverse},
      {"items", filter_items},
      {"dictsort", filter_dictsort},
      {"sort", filter_sort},
      {"unique", filter_unique},
      {"min", filter_extreme<CompareOp::lt>},
      {"max", filter_extreme<CompareOp::gt>},
      {"sum", filter_sum},
      {"attr", filter_attr},
      {"map", filter_map},
      {"select", filter_select<true, false>},
      {"reject", filter_select<false, false>},
      {"selectattr", filter_select<true, true>},
      {"rejectattr", filter_select<false, true>},
  };
  const auto it = kFilters.find(name);
  return it == kFilters.end() ? nullptr : it->second;
}

}  // namespace chimere::jinja
