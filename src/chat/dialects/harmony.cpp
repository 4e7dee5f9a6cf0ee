// harmony.cpp  The messages of gpt-oss: every one says in its head for whom it is.
//
//   <|channel|>analysis<|message|>THOUGHT<|end|>
//   <|start|>assistant<|channel|>final<|message|>TEXT
//   <|start|>assistant to=functions.NAME<|channel|>commentary <|constrain|>json<|message|>{...}
// The recipient of a call may also stand behind the channel.
//
// Text without such a head is read, and calls are forced, in the dialect of models that show none.
#include <algorithm>
#include <array>

#include "chat/dialects/call_grammar.h"
#include "chat/dialects/tagged_calls.h"
#include "chat/text_scan.h"

namespace chimere::chat {
namespace {

constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kRecipient = " to=functions.";
constexpr std::array<std::string_view, 5> kEnds = {"<|end|>", "<|return|>", "<|call|>", kStart, kChannel};
constexpr std::string_view kHarmonyWords[] = {kStart, kChannel, "<|constrain|>", kMessage, "<|end|>"};
constexpr size_t kMaxHarmonyHeadBytes = 512;

bool is_harmony(std::string_view source) {
  return source.find(kChannel) != std::string_view::npos && source.find(kMessage) != std::string_view::npos;
}

// The word that follows `label`; empty when there is no such label.
std::string word_after(std::string_view head, std::string_view label) {
  const size_t at = head.find(label);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = head.substr(at + label.size());
  return std::string(rest.substr(0, rest.find_first_of(" <\n")));
}

class HarmonyMessages : public TaggedCalls {
 public:
  std::unique_ptr<CallReader> clone() const override { return std::make_unique<HarmonyMessages>(*this); }

  void begin_frames(bool in_content) override { place_ = in_content ? Place::body : Place::head; }

  Step step(OutputText& out, bool is_final) override {
    switch (place_) {
      case Place::outside: return TaggedCalls::step(out, is_final);
      case Place::head: return step_head(out, is_final);
      case Place::body: return step_body(out, is_final);
    }
    return Step::content;
  }

  Rest finish(OutputText& out, bool is_cut) override {
    if (place_ == Place::outside) return TaggedCalls::finish(out, is_cut);
    if (place_ == Place::head) return Rest::none;
    if (kind_ == Kind::tool_call_begin) return call_.finish(out, is_cut) ? Rest::none : Rest::content;
    return kind_ == Kind::reasoning ? Rest::reasoning : Rest::content;
  }

 private:
  using Kind = OutputEvent::Kind;
  enum class Place { outside, head, body };  // of messages; the head ends with <|message|>

  Step step_head(OutputText& out, bool is_final) {
    const std::string_view text = out.rest();
    const std::string_view rest = text.substr(std::min(text.find_first_not_of(" \n"), text.size()));
    if (rest.empty()) return Step::wait;
    const auto may_begin = [&](std::string_view marker) {
      return rest.starts_with(marker) || (!is_final && marker.starts_with(rest));
    };
    const size_t end = text.find(kMessage);
    const bool is_head = (may_begin(kStart) || may_begin(kChannel)) &&
                         (end != std::string_view::npos || rest.size() <= kMaxHarmonyHeadBytes);
    if (is_head && end == std::string_view::npos && !is_final) return Step::wait;
    if (!is_head || end == std::string_view::npos) {
      place_ = Place::outside;
      return Step::content;
    }
    const std::string_view head = text.substr(0, end);
    const std::string function = out.has_tools() ? word_after(head, kRecipient) : std::string();
    kind_ = !function.empty()                          ? Kind::tool_call_begin
            : word_after(head, kChannel) == "analysis" ? Kind::reasoning
                                                       : Kind::content;
    out.consume(end + kMessage.size());
    call_ = JsonCallReader(function);
    scan_ = 0;
    place_ = Place::body;
    return Step::again;
  }

  Step step_body(OutputText& out, bool is_final) {
    const std::string_view text = out.rest();
    size_t end = std::string_view::npos, held = 0;
    std::string_view marker;
    for (const std::string_view one : kEnds) {
      const size_t found = text.find(one, scan_);
      held = std::max(held, held_suffix(text, one));
      if (found >= end) continue;
      end = found;
      marker = one;
    }
    const bool is_closed = end != std::string_view::npos;
    if (kind_ == Kind::tool_call_begin) {
      scan_ = is_closed ? end : text.size() - held;
      const JsonCallReader::Progress progress = call_.read(out, scan_, is_closed);
      scan_ -= std::min(scan_, text.size() - out.rest().size());
      if (progress == JsonCallReader::Progress::none) {
        kind_ = Kind::content;
        scan_ = 0;
        return Step::again;
      }
      if (!is_closed) return Step::wait;
      if (progress == JsonCallReader::Progress::open) out.end_call();
      out.consume(out.rest().find(marker));
    } else {
      const size_t ready = is_closed ? end : text.size() - (is_final ? 0 : held);
      out.emit(kind_, text.substr(0, ready));
      out.consume(ready);
      if (!is_closed) return Step::wait;
      out.close_channel(kind_);
    }
    if (marker != kStart && marker != kChannel) out.consume(marker.size());
    place_ = Place::head;
    return Step::again;
  }

  Place place_ = Place::outside;
  Kind kind_ = Kind::content;  // of the message that is read; tool_call_begin: a call
  JsonCallReader call_;
  size_t scan_ = 0;  // how far the message was searched for its end
};

std::unique_ptr<CallReader> harmony_reader() { return std::make_unique<HarmonyMessages>(); }

}  // namespace

extern const Dialect kHarmony = {.name = "harmony",
                                 .is_shown_by = is_harmony,
                                 .marker = kToolCallOpen,
                                 .may_lack_marker = false,
                                 .is_framed = true,
                                 .words = kHarmonyWords,
                                 .make_reader = harmony_reader,
                                 .call = hermes_call,
                                 .calls = calls_on_lines};

}  // namespace chimere::chat
