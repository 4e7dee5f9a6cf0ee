// json_stream.cpp  Tokens of JSON, byte by byte.
#include "chat/json_stream.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "chat/text_scan.h"
#include "text/json.h"

namespace chimere::chat {
namespace {

constexpr size_t kMaxCallHeadBytes = 4096;  // a name and what may stand before it

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

void append_control(char c, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  out += "\\u00";
  out += kHex[static_cast<unsigned char>(c) >> 4];
  out += kHex[static_cast<unsigned char>(c) & 15];
}

// Walks over the members of an object. Each step says whether the text was long enough, and whether it was JSON.
class HeadCursor {
 public:
  enum class Step { ok, more, bad };

  explicit HeadCursor(std::string_view text) : text_(text) {}

  size_t at() const { return at_; }
  // The next byte that is no space; 0 when there is none.
  char next() {
    at_ += count_space(text_.substr(at_));
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  Step skip(char wanted) {
    const char found = next();
    if (found == '\0') return Step::more;
    if (found != wanted) return Step::bad;
    ++at_;
    return Step::ok;
  }
  Step string(std::string& value) {
    const char first = next();
    if (first == '\0') return Step::more;
    if (first != '"') return Step::bad;
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return Step::more;
    const std::string_view quoted = text_.substr(at_, end + 1 - at_);
    const auto json = parse_json(quoted);
    if (!json || !json->is_string()) return Step::bad;
    value = json->get<std::string>();
    at_ = end + 1;
    return Step::ok;
  }
  Step skip_value() {
    const char first = next();
    if (first == '\0') return Step::more;
    std::string unused;
    if (first == '"') return string(unused);
    if (first == '{' || first == '[') {
      JsonCopy copy;
      at_ += copy.read(text_.substr(at_), unused);
      return copy.is_complete() ? Step::ok : Step::more;
    }
    at_ = std::min(text_.find_first_of(",}", at_), text_.size());
    return at_ < text_.size() ? Step::ok : Step::more;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

// Whether an object begins here that may be arguments: a brace and then a key or the end.
HeadCursor::Step opens_object(HeadCursor cursor) {
  if (const auto step = cursor.skip('{'); step != HeadCursor::Step::ok) return step;
  const char next = cursor.next();
  if (next == '\0') return HeadCursor::Step::more;
  return next == '"' || next == '}' ? HeadCursor::Step::ok : HeadCursor::Step::bad;
}

void read_members(HeadCursor& cursor, JsonCallHead& head) {
  using Step = HeadCursor::Step;
  using Kind = JsonCallHead::Kind;
  const auto stop_at = [&](Step step) { head.kind = step == Step::more ? Kind::incomplete : Kind::whole; };
  if (const Step step = cursor.skip('{'); step != Step::ok) return stop_at(step);
  while (true) {
    std::string key;
    if (const Step step = cursor.string(key); step != Step::ok) return stop_at(step);
    if (const Step step = cursor.skip(':'); step != Step::ok) return stop_at(step);
    if (key == "arguments" || key == "parameters") {
      if (head.name.empty()) return stop_at(Step::bad);
      const Step step = opens_object(cursor);
      if (step != Step::ok) return stop_at(step);
      cursor.next();
      head.arguments_begin = cursor.at();
      head.kind = Kind::found;
      return;
    }
    const Step value = key == "name" ? cursor.string(head.name) : cursor.skip_value();
    if (value != Step::ok) return stop_at(value);
    if (const Step step = cursor.skip(','); step != Step::ok) return stop_at(step);
  }
}

}  // namespace

size_t JsonCopy::read(std::string_view text, std::string& out) {
  constexpr std::string_view kStructure = "{}[]:,\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string_) {
      read_in_string(c, out);
      continue;
    }
    if (is_space(c)) {
      after_space_ = true;
      continue;
    }
    const bool is_literal = kStructure.find(c) == std::string_view::npos;
    if (is_literal && after_literal_ && after_space_) out += ' ';  // two of them are no JSON, and stay two
    after_space_ = false;
    after_literal_ = is_literal;
    out += c;
    if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && --depth_ <= 0) {
      is_complete_ = true;
      return i + 1;
    }
  }
  return text.size();
}

void JsonCopy::read_in_string(char c, std::string& out) {
  if (escape_.empty()) {
    if (c == '\\') {
      escape_ = c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      append_control(c, out);
    } else {
      out += c;
      if (c == '"') in_string_ = false;
    }
    return;
  }
  escape_ += c;
  const bool is_unicode = escape_[1] == 'u';
  if (is_unicode && (escape_.size() == 2 || is_hex(c))) {
    if (escape_.size() < 6) return;
    out += escape_;
    escape_.clear();
    return;
  }
  if (!is_unicode && std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) {
    out += escape_;
    escape_.clear();
    return;
  }
  // No escape of JSON's: the backslash stands for itself.
  const std::string rest = std::exchange(escape_, {}).substr(1);
  out += "\\\\";
  for (const char one : rest) read_in_string(one, out);
}

std::optional<size_t> JsonExtent::end(std::string_view text) {
  for (; seen_ < text.size(); ++seen_) {
    const char c = text[seen_];
    if (in_string_) {
      if (after_backslash_) {
        after_backslash_ = false;
      } else if (c == '\\') {
        after_backslash_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && --depth_ <= 0) {
      return ++seen_;
    }
  }
  return std::nullopt;
}

JsonCallHead read_call_head(std::string_view text, const std::string& name) {
  using Step = HeadCursor::Step;
  // What is found must not depend on how much of the text is there already.
  const bool is_long = text.size() >= kMaxCallHeadBytes;
  HeadCursor cursor(text.substr(0, kMaxCallHeadBytes));
  JsonCallHead head;
  head.name = name;
  if (name.empty()) {
    read_members(cursor, head);
  } else {
    const Step step = opens_object(cursor);
    cursor.next();
    head.arguments_begin = cursor.at();
    head.kind = step == Step::ok     ? JsonCallHead::Kind::found
                : step == Step::more ? JsonCallHead::Kind::incomplete
                                     : JsonCallHead::Kind::whole;
  }
  if (is_long && head.kind == JsonCallHead::Kind::incomplete) head.kind = JsonCallHead::Kind::whole;
  return head;
}

std::string closed_json(std::string_view cut) {
  // Where the text may be cut once more, and what was open there: behind a bracket, or before a comma.
  struct Place {
    size_t size = 0;
    std::string open;
  };
  std::deque<Place> places;  // the last three: before a member, or at worst before the object that it is the first of
  std::string open;          // closing brackets, the innermost last
  bool in_string = false;
  size_t escape = std::string_view::npos;  // where an escape began that is not complete
  const auto remember = [&](size_t size) {
    places.push_back({size, open});
    if (places.size() > 3) places.pop_front();
  };
  for (size_t i = 0; i < cut.size(); ++i) {
    const char c = cut[i];
    if (in_string) {
      if (escape != std::string_view::npos) {
        const size_t wanted = cut[escape + 1] == 'u' ? 6 : 2;
        if (i + 1 - escape == wanted) escape = std::string_view::npos;
      } else if (c == '\\') {
        escape = i;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if (c == ',') remember(i);
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') {
      open += c == '{' ? '}' : ']';
      remember(i + 1);
    }
    if ((c == '}' || c == ']') && !open.empty()) open.pop_back();
  }
  const auto closed = [](std::string_view text, const std::string& brackets) {
    return std::string(text) + std::string(brackets.rbegin(), brackets.rend());
  };
  const auto is_object = [](const std::string& text) {
    const auto json = parse_json(text);
    return json && json->is_object();
  };
  const std::string whole(cut.substr(0, escape));
  const std::string first = closed(whole + (in_string ? "\"" : ""), open);
  if (is_object(first)) return first;
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    const std::string text = closed(cut.substr(0, place->size), place->open);
    if (is_object(text)) return text;
  }
  return "{}";
}

}  // namespace chimere::chat
