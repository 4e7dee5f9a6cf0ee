// answer_text.cpp  Decoder, stop strings and parser in a row.
#include "orchestrator/answer_text.h"

#include <random>
#include <utility>

#include "sampling/certainty.h"

namespace chimere::orchestrator {
namespace {

std::string new_call_id() {
  static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string id = "call_";
  for (int i = 0; i < 24; ++i) id += kLetters[random() % (sizeof kLetters - 1)];
  return id;
}

}  // namespace

AnswerText::AnswerText(Tokenizer tokenizer, std::optional<chat::OutputParser> parser, Options options)
    : tokenizer_(tokenizer),
      decoder_(std::move(tokenizer), false, true),
      stop_(std::move(options.stop)),
      parser_(std::move(parser)),
      tokens_(options.tokens),
      max_entropy_(options.max_entropy),
      one_call_(options.one_call) {}

void AnswerText::push(const Sampled& token, ChatChunk& out, bool was_guessed) {
  if (is_stopped()) return;
  ++n_tokens_;
  if (tokens_) {
    auto chance = [&](int32_t id, float logprob) {
      return TokenChance{std::string(tokenizer_.token_text(id)), logprob, id};
    };
    const float certainty = token_certainty(token.max_prob, token.entropy, max_entropy_);
    PendingToken pending{{chance(token.id, token.logprob), {}, token.entropy, certainty, was_guessed}, decoded_bytes_};
    for (const TokenLogprob& other : token.top) pending.info.top.push_back(chance(other.id, other.logprob));
    pending_.push_back(std::move(pending));
  }
  const std::string text = decode(token.id);
  decoded_bytes_ += text.size();
  release(stop_.push(text), out);
}

std::string AnswerText::decode(int32_t id) {
  std::string text = decoder_.push(id);
  const std::string_view word = tokenizer_.token_text(id);
  if (parser_ && tokenizer_.is_control(id) && chat::is_output_marker(word, parser_->dialect())) text += word;
  return text;
}

void AnswerText::finish(ChatChunk& out, bool is_cut) {
  if (is_over_) return release_tokens(std::string::npos, out);
  one_call_ = false;  // whatever ends now was ended by the engine
  if (!stop_.hit()) {
    std::string rest = stop_.push(decoder_.finish());
    rest += stop_.finish();
    release(rest, out);
    if (!stop_.hit()) release_tokens(std::string::npos, out);
  }
  if (parser_) parser_->finish(events_, is_cut);
  add_events(out);
}

void AnswerText::release(const std::string& text, ChatChunk& out) {
  released_bytes_ += text.size();
  release_tokens(released_bytes_, out);
  if (!parser_) {
    out.content += text;
    return;
  }
  parser_->feed(text, events_);
  add_events(out);
}

void AnswerText::add_events(ChatChunk& out) {
  using Kind = chat::OutputEvent::Kind;
  for (chat::OutputEvent& event : events_) {
    if (is_over_) break;
    switch (event.kind) {
      case Kind::reasoning: out.reasoning += event.text; break;
      case Kind::content: out.content += event.text; break;
      case Kind::tool_call_begin:
        out.tool_calls.push_back({event.call_index, new_call_id(), std::move(event.text), {}});
        break;
      case Kind::tool_call_arguments:
        if (!out.tool_calls.empty() && out.tool_calls.back().index == event.call_index) {
          out.tool_calls.back().arguments += event.text;
        } else {
          out.tool_calls.push_back({event.call_index, {}, {}, std::move(event.text)});
        }
        break;
      case Kind::tool_call_end:
        has_tool_calls_ = true;
        is_over_ = one_call_;
        break;
    }
  }
  events_.clear();
}

void AnswerText::release_tokens(size_t end, ChatChunk& out) {
  while (!pending_.empty() && pending_.front().begin < end) {
    out.tokens.push_back(std::move(pending_.front().info));
    pending_.pop_front();
  }
}

}  // namespace chimere::orchestrator
