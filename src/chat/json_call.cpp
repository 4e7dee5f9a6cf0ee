#include "chat/json_call.h"

#include <optional>

#include "text/utf8.h"

namespace chimere::chat {

JsonCallReader::Progress JsonCallReader::read(OutputText& out, size_t size, bool is_closed) {
  std::string_view json = out.rest().substr(0, size);
  if (!is_closed) json.remove_suffix(incomplete_utf8(json));
  if (part_ == Part::end) {
    out.consume(json.size());
    return Progress::done;
  }
  if (part_ == Part::head) {
    const JsonCallHead head = read_call_head(json, name_);
    if (head.kind == JsonCallHead::Kind::incomplete && !is_closed) return Progress::open;
    const bool is_known = !only_declared_ || out.is_declared(head.name);
    part_ = head.kind == JsonCallHead::Kind::found && is_known ? Part::arguments : Part::whole;
    if (part_ == Part::arguments) {
      out.begin_call(head.name);
      out.consume(head.arguments_begin);
      json.remove_prefix(head.arguments_begin);
    }
  }
  if (part_ == Part::whole) return read_whole(out, json, is_closed);
  if (part_ == Part::arguments) {
    std::string delta;
    const size_t n = copy_.read(json, delta);
    out.emit_arguments(std::move(delta));
    out.consume(n);
    json.remove_prefix(n);
    if (!copy_.is_complete()) return Progress::open;
    part_ = Part::rest;
    copy_ = JsonCopy(1);
  }
  if (name_.empty()) {
    std::string unused;
    out.consume(copy_.read(json, unused));
    if (!copy_.is_complete()) return Progress::open;
  }
  out.end_call();
  part_ = Part::end;
  return Progress::done;
}

JsonCallReader::Progress JsonCallReader::read_whole(OutputText& out, std::string_view json, bool is_closed) {
  const std::optional<size_t> size = extent_.end(json);
  if (!size && !is_closed) return Progress::open;
  json = json.substr(0, size.value_or(json.size()));
  const std::optional<ToolCall> call = parse_json_call(json, name_);
  if (!call || (only_declared_ && !out.is_declared(call->name))) return Progress::none;
  out.consume(json.size());
  out.begin_call(call->name);
  out.emit_arguments(call->arguments_json);
  out.end_call();
  part_ = Part::end;
  return Progress::done;
}

bool JsonCallReader::finish(OutputText& out, bool is_cut) {
  if (part_ == Part::head || part_ == Part::whole) {
    const JsonCallHead head = read_call_head(out.rest(), name_);
    if (head.kind != JsonCallHead::Kind::incomplete || !out.is_declared(head.name)) return false;
    out.begin_call(head.name);
  } else if (part_ == Part::rest && !is_cut) {
    out.end_call();
  }
  out.consume(out.rest().size());
  return true;
}

}  // namespace chimere::chat
