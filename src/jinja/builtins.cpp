// builtins.cpp  Tests, global functions, and the methods of lists, mappings and loops.
#include "jinja/builtins.h"

#include <algorithm>
#include <ctime>
#include <unordered_map>

#include "jinja/strings.h"

namespace chimere::jinja {
namespace {

using Table = std::unordered_map<std::string_view, Builtin>;

Builtin find(const Table& table, std::string_view name) {
  const auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

// Tests

template <bool (*holds)(const Value&)>
Result<Value> test_property(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("test", args, {}, 0, nullptr));
  return Value(holds(value));
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_boolean(const Value& v) { return v.is(Kind::boolean); }
bool is_true(const Value& v) { return v.is(Kind::boolean) && v.integer() != 0; }
bool is_false(const Value& v) { return v.is(Kind::boolean) && v.integer() == 0; }
bool is_integer(const Value& v) { return v.is(Kind::integer) || v.is(Kind::big_integer); }
bool is_float(const Value& v) { return v.is(Kind::real); }
bool is_number(const Value& v) { return v.is_number(); }
bool is_string(const Value& v) { return v.is_string(); }
bool is_mapping(const Value& v) { return v.is(Kind::dict); }

// Undefined passes here, as in Jinja: `len()` is 0 and __getitem__ exists.
bool is_sequence(const Value& v) {
  return v.is_string() || v.is(Kind::dict) || v.is_undefined() || v.is(Kind::list) || v.is(Kind::tuple) ||
         v.is(Kind::range);
}
bool is_iterable(const Value& v) {
  return v.is_string() || v.is(Kind::dict) || v.is_undefined() || v.is_sequence() || v.is(Kind::iterator) ||
         v.is(Kind::loop);
}
bool is_callable(const Value& v) {
  return v.is(Kind::function) || v.is(Kind::macro) || v.is(Kind::loop) || v.is_undefined();
}

template <bool upper_wanted>
Result<Value> test_case(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY_ASSIGN(Text text, in.to_text(value));
  TRY_ASSIGN(const Value self, in.string(std::move(text)));
  return find_string_method(upper_wanted ? "isupper" : "islower")(in, self, args);
}

template <int remainder>
Result<Value> test_parity(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("odd", args, {}, 0, nullptr));
  TRY_ASSIGN(const Value rest, in.binary(BinaryOp::mod, value, Value(2)));
  TRY_ASSIGN(const bool same, in.equals(rest, Value(remainder)));
  return Value(same);
}

Result<Value> test_divisibleby(Interpreter& in, const Value& value, const CallArgs& args) {
  Value divisor;
  TRY(in.bind("divisibleby", args, {"num"}, 1, &divisor));
  TRY_ASSIGN(const Value rest, in.binary(BinaryOp::mod, value, divisor));
  TRY_ASSIGN(const bool same, in.equals(rest, Value(0)));
  return Value(same);
}

Result<Value> test_in(Interpreter& in, const Value& value, const CallArgs& args) {
  Value container;
  TRY(in.bind("in", args, {"seq"}, 1, &container));
  TRY_ASSIGN(const bool found, in.contains(container, value));
  return Value(found);
}

template <CompareOp op>
Result<Value> test_compare(Interpreter& in, const Value& value, const CallArgs& args) {
  Value other;
  TRY(in.bind("comparison", args, {"/other"}, 1, &other));
  if (op == CompareOp::eq || op == CompareOp::ne) {
    TRY_ASSIGN(const bool same, in.equals(value, other));
    return Value(same == (op == CompareOp::eq));
  }
  TRY_ASSIGN(const bool holds, in.less(value, other, op));
  return Value(holds);
}

template <Builtin (*lookup)(std::string_view)>
Result<Value> test_registered(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("test", args, {}, 0, nullptr));
  return Value(value.is_string() && lookup(value.bytes()) != nullptr);
}

// Global functions

Result<Value> global_range(Interpreter& in, const Value&, const CallArgs& args) {
  Value a[3];
  TRY(in.bind("range", args, {"/start", "/stop", "/step"}, 1, a));
  for (const Value& v : a) {
    if (v.is_undefined()) return in.error(v.as<UndefinedObject>().message);
    if (!v.is_missing() && !v.is_integral()) return in.error("range arguments must be integers");
  }
  const int64_t start = a[1].is_missing() ? 0 : a[0].integer();
  const int64_t stop = a[1].is_missing() ? a[0].integer() : a[1].integer();
  const int64_t step = a[2].is_missing() ? 1 : a[2].integer();
  if (step == 0) return in.error("range step must not be zero");
  constexpr uint64_t kMaxRange = 100'000;
  const bool is_empty = step > 0 ? start >= stop : start <= stop;
  const uint64_t distance = is_empty   ? 0
                            : step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                       : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const uint64_t n = distance / stride + (distance % stride != 0 ? 1 : 0);
  if (n > kMaxRange) return in.error("range of more than 100000 items");
  std::vector<Value> items;
  items.reserve(n);
  for (uint64_t i = 0; i < n; ++i) {
    items.emplace_back(static_cast<int64_t>(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(step)));
  }
  return in.sequence(Kind::range, std::move(items));
}

// dict() and namespace() take the same arguments: a mapping or pairs, and keywords.
Result<std::vector<std::pair<Value, Value>>> dict_entries(Interpreter& in, const CallArgs& args) {
  std::vector<std::pair<Value, Value>> entries;
  if (args.positional.size() > 1) return in.error("dict expected at most 1 positional argument");
  if (!args.positional.empty()) {
    const Value& source = args.positional[0];
    if (source.is(Kind::dict)) {
      entries = source.dict().entries;
    } else {
      TRY_ASSIGN(const std::vector<Value> pairs, in.iterate(source));
      for (const Value& pair : pairs) {
        TRY_ASSIGN(std::vector<Value> parts, in.iterate(pair));
        if (parts.size() != 2) return in.error("dict needs pairs of a key and a value");
        entries.emplace_back(std::move(parts[0]), std::move(parts[1]));
      }
    }
  }
  for (const auto& [name, value] : args.keyword) {
    TRY_ASSIGN(Value key, in.string(args.name(name)));
    entries.emplace_back(std::move(key), value);
  }
  return entries;
}

Result<Value> global_dict(Interpreter& in, const Value&, const CallArgs& args) {
  TRY_ASSIGN(auto entries, dict_entries(in, args));
  return in.dict(std::move(entries));
}

Result<Value> global_namespace(Interpreter& in, const Value&, const CallArgs& args) {
  TRY_ASSIGN(auto entries, dict_entries(in, args));
  for (const auto& [key, value] : entries) {
    if (!is_hashable(key)) return in.error("namespace keys must be hashable");
  }
  return in.name_space(std::move(entries));
}

Result<Value> global_raise(Interpreter& in, const Value&, const CallArgs& args) {
  Value message;
  TRY(in.bind("raise_exception", args, {"message"}, 1, &message));
  TRY_ASSIGN(const Text text, in.to_text(message));
  constexpr size_t kMaxMessage = 2000;
  return in.error(text.bytes().substr(0, kMaxMessage));
}

// datetime.now().strftime(format): a naive time, so no zone and whole seconds.
Result<Value> global_strftime(Interpreter& in, const Value&, const CallArgs& args) {
  Value format;
  TRY(in.bind("strftime_now", args, {"format"}, 1, &format));
  if (!format.is_string()) return in.error("strftime_now needs a format string");
  const std::tm now = in.clock()();
  const std::string& s = format.bytes();
  constexpr size_t kMaxFormat = 4096;
  if (s.size() > kMaxFormat) return in.exhausted("strftime_now format longer than 4096 bytes");
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '%' || i + 1 >= s.size()) {
      out += s[i];
      continue;
    }
    std::string directive = "%";
    ++i;
    if ((s[i] == '-' || s[i] == '_' || s[i] == '^' || s[i] == '#') && i + 1 < s.size()) directive += s[i++];
    directive += s[i];
    if (s[i] == 'f') {
      out += "000000";
    } else if (s[i] != 'z' && s[i] != 'Z') {
      if (std::string_view("aAbBcCdDeFgGhHIjkllmMnprRsStTuUVwWxXyYP%").find(s[i]) == std::string_view::npos) {
        out += directive;
        continue;
      }
      char buffer[256];
      out.append(buffer, std::strftime(buffer, sizeof(buffer), directive.c_str(), &now));
    }
  }
  return in.string(Text(std::move(out), format.text().any_input()));
}

// Methods

enum class DictPart { keys, values, items };

template <DictPart part>
Result<Value> dict_view(Interpreter& in, const Value& self, const CallArgs& args) {
  TRY(in.bind("method", args, {}, 0, nullptr));
  std::vector<Value> items;
  items.reserve(self.dict().entries.size());
  for (const auto& [key, value] : self.dict().entries) {
    if (part == DictPart::keys) {
      items.push_back(key);
    } else if (part == DictPart::values) {
      items.push_back(value);
    } else {
      TRY_ASSIGN(Value pair, in.pair(key, value));
      items.push_back(std::move(pair));
    }
  }
  const Kind kind = part == DictPart::keys     ? Kind::dict_keys
                    : part == DictPart::values ? Kind::dict_values
                                               : Kind::dict_items;
  return in.sequence(kind, std::move(items));
}

Result<Value> dict_get(Interpreter& in, const Value& self, const CallArgs& args) {
  Value a[2];
  TRY(in.bind("get", args, {"/key", "/default"}, 1, a));
  if (!is_hashable(a[0])) return in.error(std::string("unhashable type: '") + type_name(a[0]) + "'");
  if (!a[0].is_string()) TRY(in.tick(self.dict().entries.size() / 8));
  if (const Value* found = self.dict().find(a[0])) return *found;
  return a[1].is_missing() ? Value() : a[1];
}

Result<Value> container_copy(Interpreter& in, const Value& self, const CallArgs& args) {
  TRY(in.bind("copy", args, {}, 0, nullptr));
  return self;
}

Result<Value> list_count(Interpreter& in, const Value& self, const CallArgs& args) {
  Value item;
  TRY(in.bind("count", args, {"/value"}, 1, &item));
  int64_t n = 0;
  for (const Value& candidate : self.items()) {
    TRY_ASSIGN(const bool same, in.equals(candidate, item));
    n += same;
  }
  return Value(n);
}

Result<Value> list_index(Interpreter& in, const Value& self, const CallArgs& args) {
  Value item;
  TRY(in.bind("index", args, {"/value"}, 1, &item));
  for (size_t i = 0; i < self.items().size(); ++i) {
    TRY_ASSIGN(const bool same, in.equals(self.items()[i], item));
    if (same) return Value(static_cast<int64_t>(i));
  }
  return in.error("value is not in list");
}

Result<Value> loop_cycle(Interpreter& in, const Value& self, const CallArgs& args) {
  if (args.positional.empty()) return in.error("no items for cycling given");
  const auto n = static_cast<int64_t>(args.positional.size());
  return args.positional[static_cast<size_t>(self.as<LoopObject>().index0 % n)];
}

Result<Value> loop_changed(Interpreter& in, const Value& self, const CallArgs& args) {
  auto& loop = self.as<LoopObject>();
  TRY_ASSIGN(Value current, in.sequence(Kind::tuple, args.positional));
  if (!loop.last_changed.is_missing()) {
    TRY_ASSIGN(const bool same, in.equals(loop.last_changed, current));
    if (same) return Value(false);
  }
  loop.last_changed = std::move(current);
  return Value(true);
}

}  // namespace

Builtin find_filter(std::string_view name) {
  const Builtin filter = find_string_filter(name);
  return filter ? filter : find_sequence_filter(name);
}

Builtin find_test(std::string_view name) {
  static const Table kTests = {
      {"defined", test_property<is_defined>},
      {"undefined", test_property<is_undefined>},
      {"none", test_property<is_none>},
      {"boolean", test_property<is_boolean>},
      {"true", test_property<is_true>},
      {"false", test_property<is_false>},
      {"integer", test_property<is_integer>},
      {"float", test_property<is_float>},
      {"number", test_property<is_number>},
      {"string", test_property<is_string>},
      {"mapping", test_property<is_mapping>},
      {"sequence", test_property<is_sequence>},
      {"iterable", test_property<is_iterable>},
      {"callable", test_property<is_callable>},
      {"lower", test_case<false>},
      {"upper", test_case<true>},
      {"odd", test_parity<1>},
      {"even", test_parity<0>},
      {"divisibleby", test_divisibleby},
      {"in", test_in},
      {"filter", test_registered<find_filter>},
      {"test", test_registered<find_test>},
      {"==", test_compare<CompareOp::eq>},
      {"eq", test_compare<CompareOp::eq>},
      {"equalto", test_compare<CompareOp::eq>},
      {"!=", test_compare<CompareOp::ne>},
      {"ne", test_compare<CompareOp::ne>},
      {">", test_compare<CompareOp::gt>},
      {"gt", test_compare<CompareOp::gt>},
      {"greaterthan", test_compare<CompareOp::gt>},
      {">=", test_compare<CompareOp::ge>},
      {"ge", test_compare<CompareOp::ge>},
      {"<", test_compare<CompareOp::lt>},
      {"lt", test_compare<CompareOp::lt>},
      {"lessthan", test_compare<CompareOp::lt>},
      {"<=", test_compare<CompareOp::le>},
      {"le", test_compare<CompareOp::le>},
  };
  return find(kTests, name);
}

Builtin find_global(std::string_view name) {
  static const Table kGlobals = {
      {"range", global_range},           {"dict", global_dict},
      {"namespace", global_namespace},   {"raise_exception", global_raise},
      {"strftime_now", global_strftime},
  };
  return find(kGlobals, name);
}

Builtin find_method(Kind kind, std::string_view name) {
  static const Table kDict = {
      {"items", dict_view<DictPart::items>},
      {"keys", dict_view<DictPart::keys>},
      {"values", dict_view<DictPart::values>},
      {"get", dict_get},
      {"copy", container_copy},
  };
  static const Table kList = {{"count", list_count}, {"index", list_index}, {"copy", container_copy}};
  static const Table kTuple = {{"count", list_count}, {"index", list_index}};
  static const Table kLoop = {{"cycle", loop_cycle}, {"changed", loop_changed}};
  switch (kind) {
    case Kind::string: return find_string_method(name);
    case Kind::dict: return find(kDict, name);
    case Kind::list: return find(kList, name);
    case Kind::tuple:
    case Kind::range: return find(kTuple, name);
    case Kind::loop: return find(kLoop, name);
    default: return nullptr;
  }
}

std::string left_out_note(NameKind kind, std::string_view name) {
  using Name = std::pair<NameKind, std::string_view>;
  static constexpr Name kLeftOut[] = {
      {NameKind::filter, "batch"},        {NameKind::filter, "center"},     {NameKind::filter, "forceescape"},
      {NameKind::filter, "groupby"},      {NameKind::filter, "slice"},      {NameKind::filter, "truncate"},
      {NameKind::filter, "urlencode"},    {NameKind::filter, "wordcount"},  {NameKind::test, "escaped"},
      {NameKind::test, "sameas"},         {NameKind::global, "cycler"},     {NameKind::global, "joiner"},
      {NameKind::method, "casefold"},     {NameKind::method, "expandtabs"}, {NameKind::method, "isdecimal"},
      {NameKind::method, "isidentifier"}, {NameKind::method, "isnumeric"},  {NameKind::method, "isprintable"},
      {NameKind::method, "istitle"},      {NameKind::method, "swapcase"},
  };
  if (std::find(std::begin(kLeftOut), std::end(kLeftOut), Name(kind, name)) == std::end(kLeftOut)) return {};
  return " (Jinja has it; it was left out here because no known chat template uses it)";
}

bool is_mutating_method(Kind kind, std::string_view name) {
  const auto any_of = [name](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (kind == Kind::dict) return any_of({"clear", "pop", "popitem", "setdefault", "update"});
  return kind == Kind::list && any_of({"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"});
}

}  // namespace chimere::jinja
