#include "chat/dialects/bare_calls.h"

#include "chat/text_scan.h"

namespace chimere::chat {

BareHead BareCalls::read_head(std::string_view text) const {
  using Kind = BareHead::Kind;
  size_t at = skip_blank(text, 0);
  const std::string_view rest = text.substr(at);
  if (rest.empty() || is_prefix_of(rest, form_.marker)) return {Kind::incomplete};
  const bool is_marked = rest.starts_with(form_.marker);
  if (is_marked) at = skip_blank(text, at + form_.marker.size());
  if (at >= text.size()) return {Kind::incomplete};
  if (!is_marked && !form_.may_lack_marker) return {Kind::none};
  if (text[at] == '{' || text[at] == '[') return {Kind::found, {}, at};
  return form_.read_name ? form_.read_name(text, at) : BareHead{Kind::none};
}

CallReader::Step BareCalls::was_content(OutputText& out) {
  out.emit(OutputEvent::Kind::content, opening_);
  return Step::content;
}

CallReader::Step BareCalls::step(OutputText& out, bool is_final) {
  switch (state_) {
    case State::head: return step_head(out, is_final);
    case State::call: return step_call(out);
    case State::next: return step_next(out);
    case State::behind: return step_behind(out, is_final);
  }
  return Step::content;
}

CallReader::Rest BareCalls::finish(OutputText& out, bool is_cut) {
  if (state_ != State::call || call_.finish(out, is_cut)) return Rest::none;
  was_content(out);
  return Rest::content;
}

CallReader::Step BareCalls::step_head(OutputText& out, bool is_final) {
  const std::string_view text = out.rest();
  const BareHead head = read_head(text);
  if (head.kind == BareHead::Kind::incomplete && !is_final) return Step::wait;
  const std::string_view trimmed = text.substr(count_space(text));
  const bool is_marked = trimmed.starts_with(form_.marker);
  if (head.kind == BareHead::Kind::found) {
    size_t begin = head.json_begin;
    in_array_ = head.name.empty() && text[begin] == '[';
    if (in_array_) begin += 1 + count_space(text.substr(begin + 1));
    if (begin == text.size() && !is_final) return Step::wait;
    if (begin < text.size() && text[begin] == '{') {
      opening_ = text.substr(0, begin);
      only_declared_ = !is_marked;
      out.consume(begin);
      call_ = JsonCallReader(head.name, only_declared_);
      state_ = State::call;
      return Step::again;
    }
  }
  opening_.clear();
  if (is_marked) {
    opening_ = text.substr(0, text.size() - trimmed.size() + form_.marker.size());
    out.consume(opening_.size());
  }
  return was_content(out);
}

CallReader::Step BareCalls::step_call(OutputText& out) {
  switch (call_.read(out, out.rest().size(), false)) {
    case JsonCallReader::Progress::open: return Step::wait;
    case JsonCallReader::Progress::none: return was_content(out);
    case JsonCallReader::Progress::done: break;
  }
  state_ = in_array_ ? State::next : State::behind;
  return Step::again;
}

CallReader::Step BareCalls::step_next(OutputText& out) {
  while (!out.rest().empty() && (is_space(out.rest()[0]) || out.rest()[0] == ',')) out.consume(1);
  if (out.rest().empty()) return Step::wait;
  if (out.rest()[0] == '{') {
    opening_.clear();
    call_ = JsonCallReader({}, only_declared_);
    state_ = State::call;
  } else if (out.rest()[0] == ']') {
    out.consume(1);
    state_ = State::behind;
  } else {
    return Step::content;
  }
  return Step::again;
}

CallReader::Step BareCalls::step_behind(OutputText& out, bool is_final) {
  while (!out.rest().empty() && (is_space(out.rest()[0]) || out.rest()[0] == ';')) out.consume(1);
  const std::string_view text = out.rest();
  if (text.empty() || (!is_final && is_prefix_of(text, form_.marker))) return Step::wait;
  if (!text.starts_with(form_.marker) && !(form_.may_lack_marker && text[0] == '{')) return Step::content;
  state_ = State::head;
  return Step::again;
}

}  // namespace chimere::chat
