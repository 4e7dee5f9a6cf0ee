// generation_answer.cpp  Polls the choices in turn and writes what came.
#include "server/protocols/shared/generation_answer.h"

#include <string>
#include <utility>

#include "server/protocols/shared/answer_json.h"

namespace chimere::server {
namespace {

using orchestrator::ChatChunk;
using orchestrator::Finish;

// Tokens with their alternatives, of an answer that is sent whole: what is written of so many at most here, and at all.
// The second is the context of most models, 24,000 tokens, with 20 alternatives each.
constexpr size_t kMaxPieceBytes = 64 << 10;  // about, of a stream
constexpr size_t kWrittenAtOnce = 2'000;
constexpr size_t kMaxListedTokens = 500'000;

size_t listed_tokens(const ChatChunk& chunk) {
  size_t n = 0;
  for (const orchestrator::TokenInfo& token : chunk.tokens) n += 1 + token.top.size();
  return n;
}

// What a stream has its head for: a word, progress that was asked for, a step of a run, or the end. That a prompt was
// made is none: until there is more, the request can be sent elsewhere, and what fails has its status.
bool is_news(const ChatChunk& chunk) {
  return chunk.is_terminal() || !chunk.reasoning.empty() || !chunk.content.empty() || !chunk.tool_calls.empty() ||
         !chunk.tokens.empty() || chunk.progress || !chunk.steps.empty();
}

class GenerationAnswer : public Answer {
 public:
  GenerationAnswer(Generation generation, std::unique_ptr<RequestRecord> record)
      : generation_(std::move(generation)),
        ignored_(ignored_header(generation_.ignored)),
        sums_(generation_.choices.size()),
        usages_(generation_.choices.size()),
        n_open_(generation_.choices.size()),
        record_(std::move(record)) {
    for (const auto& choice : generation_.choices) record_->watch(*choice);
  }

  Piece poll() override {
    Piece piece;
    if (writing_) {
      take_written(piece);
      return piece;
    }
    for (size_t i = 0; i < generation_.choices.size(); ++i) {
      while (!piece.done && !writing_ && piece.body.size() < kMaxPieceBytes) {
        std::optional<ChatChunk> chunk = generation_.choices[i]->poll();
        if (!chunk) break;
        take(piece, i, std::move(*chunk));
      }
    }
    if (generation_.stream) keep_in_touch(piece);
    return piece;
  }

  void tick(std::chrono::steady_clock::duration unread) override {
    record_->set_unread(unread);
    if (!generation_.stream || Clock::now() - spoke_ < generation_.longest_silence) return;
    has_been_silent_ = true;
    generation_.wake();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // A stream that has had nothing to say for too long. What fails after an early head is an event.
  void keep_in_touch(Piece& piece) {
    if (!piece.head && piece.body.empty()) {
      if (!has_been_silent_) return;
      if (!head_sent_) send_head(piece);
      piece.body += generation_.writer->pause();
    }
    has_been_silent_ = false;
    spoke_ = Clock::now();
  }

  void take(Piece& piece, size_t choice, ChatChunk chunk) {
    if (chunk.kind == ChatChunk::Kind::started && ++n_started_ == sums_.size()) generation_.body_lease.reset();
    if (chunk.is_terminal()) {
      usages_[choice] = chunk.usage;
      record_->set_usage(total(), chunk.error ? code_name(chunk.error->code) : finish_name(chunk.finish));
      record_->end_answer(chunk);
    }
    if (chunk.kind == ChatChunk::Kind::started) answer_limit_ = chunk.answer_limit;
    const bool is_cancelled = chunk.kind == ChatChunk::Kind::finished && chunk.finish == Finish::cancelled;
    if (is_cancelled) return fail(piece, record_->cancel_error());
    if (chunk.is_too_long) {
      return fail(piece,
                  prompt_too_long(chunk.usage.prompt_tokens, generation_.context_length, generation_.prompt_field));
    }
    if (chunk.kind == ChatChunk::Kind::failed) return fail(piece, to_api_error(*chunk.error));
    if (choice == 0) record_->add_answer(chunk.content);
    const bool is_last = chunk.is_terminal() && --n_open_ == 0;
    if (is_last) record_->keep_answer();
    if (generation_.stream) {
      (head_sent_ ? piece.body : held_) += generation_.writer->events(choice, chunk);
      if (!head_sent_ && is_news(chunk)) send_head(piece);
      if (is_last) piece.body += generation_.writer->end(total());
    } else {
      n_listed_ += listed_tokens(chunk);
      if (n_listed_ > kMaxListedTokens) return fail(piece, too_many_listed());
      append(sums_[choice], std::move(chunk));
      if (is_last) return write_whole(piece);
    }
    piece.done = is_last;
  }

  // A long list of tokens takes seconds to write, which are not the I/O thread's.
  void write_whole(Piece& piece) {
    if (n_listed_ <= kWrittenAtOnce) return send_whole(piece, generation_.writer->body(sums_, total()));
    auto sums = std::make_shared<std::vector<ChatChunk>>(std::move(sums_));
    auto write = [writer = generation_.writer, sums, usage = total()]() -> Result<std::string> {
      std::string text = writer->body(*sums, usage);
      sums->clear();  // here, where it may take its time
      return text;
    };
    writing_ = generation_.workers->run<std::string>(std::move(write), generation_.wake);
  }

  void take_written(Piece& piece) {
    auto body = writing_->poll();
    if (!body) return;
    if (!*body) return fail(piece, failed_work(body->error()));
    send_whole(piece, std::move(**body));
  }

  void send_whole(Piece& piece, std::string body) {
    piece.head = with_headers({200, {{"Content-Type", "application/json"}}, std::move(body)});
    piece.done = true;
    record_->set_status(200);
  }

  static ApiError too_many_listed() {
    return {400,
            "logprobs: an answer that is not streamed has at most " + std::to_string(kMaxListedTokens) +
                " tokens and alternatives, and this one would have more: ask for a stream, or for fewer alternatives",
            "invalid_request_error", "logprobs", "answer_too_large"};
  }

  // One choice that fails ends the answer; the others are cancelled with it. What was held is of no answer then.
  void fail(Piece& piece, const ApiError& error) {
    if (generation_.stream && !head_sent_ && generation_.writer->streams(error)) send_head(piece);
    if (head_sent_) {
      piece.body += generation_.writer->error_event(error);
    } else {
      piece.head = with_headers(generation_.writer->error(error));
      record_->set_status(piece.head->status);
    }
    piece.done = true;
  }

  // With what was held back for it.
  void send_head(Piece& piece) {
    piece.head =
        with_headers({200, {{"Content-Type", generation_.writer->stream_type()}, {"Cache-Control", "no-cache"}}, {}});
    piece.body += std::exchange(held_, {});
    head_sent_ = true;
    record_->set_status(200);
  }

  engine::Usage total() const { return total_usage(usages_, generation_.choices_per_prompt); }

  HttpResponse with_headers(HttpResponse response) const {
    if (!ignored_.empty()) response.add_header("X-Chimere-Ignored", ignored_);
    if (answer_limit_ >= 0) response.add_header("X-Chimere-Max-Tokens", std::to_string(answer_limit_));
    response.add_header("X-Chimere-Model", generation_.model);
    return response;
  }

  Generation generation_;
  const std::string ignored_;
  std::vector<ChatChunk> sums_;
  std::vector<engine::Usage> usages_;
  size_t n_open_;
  std::unique_ptr<RequestRecord> record_;
  size_t n_started_ = 0;
  size_t n_listed_ = 0;  // tokens with their alternatives in sums_
  std::unique_ptr<orchestrator::ServiceJob<std::string>> writing_;
  bool head_sent_ = false;
  std::string held_;                        // events from before the head
  bool has_been_silent_ = false;            // for too long
  Clock::time_point spoke_ = Clock::now();  // when it last had something to send
  int32_t answer_limit_ = -1;               // that the request did not choose itself
};

}  // namespace

std::unique_ptr<Answer> generation_answer(Generation generation, std::unique_ptr<RequestRecord> record) {
  return std::make_unique<GenerationAnswer>(std::move(generation), std::move(record));
}

}  // namespace chimere::server
