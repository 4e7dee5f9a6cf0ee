// chat_answer.cpp  Polls a chat stream and writes what came.
#include "server/chat_answer.h"

#include <atomic>
#include <ctime>
#include <random>
#include <utility>

namespace chimere::server {
namespace {

using orchestrator::ChatChunk;
using orchestrator::ChatService;
using orchestrator::ChatStream;

std::string new_id() {
  static const std::string prefix = [] {
    std::random_device device;
    return "chatcmpl-" + std::to_string(device()) + "-";
  }();
  static std::atomic<uint64_t> count{0};
  return prefix + std::to_string(++count);
}

class ChatAnswer : public Answer {
 public:
  ChatAnswer(ResponseHead head, const ChatCall& call, std::unique_ptr<ChatStream> stream,
             std::unique_ptr<RequestRecord> record)
      : head_(head),
        is_stream_(call.stream),
        include_usage_(call.include_usage),
        ignored_(ignored_header(call.ignored)),
        stream_(std::move(stream)),
        whole_(std::move(head)),
        record_(std::move(record)) {}

  Piece poll() override {
    Piece piece;
    while (!piece.done) {
      std::optional<ChatChunk> chunk = stream_->poll();
      if (!chunk) break;
      if (chunk->kind == ChatChunk::Kind::finished && chunk->finish == orchestrator::Finish::cancelled) {
        chunk->kind = ChatChunk::Kind::failed;
        chunk->error = Error{Code::cancelled, "the server is stopping"};
      }
      if (chunk->is_terminal()) {
        record_->set_usage(chunk->usage, chunk->error ? code_name(chunk->error->code) : finish_name(chunk->finish));
      }
      if (chunk->kind == ChatChunk::Kind::failed && !head_sent_) {
        piece.head = with_ignored(error_response(to_api_error(*chunk->error)));
        piece.done = true;
        record_->set_status(piece.head->status);
      } else if (is_stream_) {
        add_events(piece, *chunk);
      } else {
        add_whole(piece, std::move(*chunk));
      }
    }
    return piece;
  }

 private:
  void add_events(Piece& piece, const ChatChunk& chunk) {
    if (!head_sent_) {
      piece.head = with_ignored({200, {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}}, {}});
      head_sent_ = true;
      record_->set_status(200);
    }
    piece.body += stream_events(head_, chunk, include_usage_);
    if (chunk.is_terminal()) {
      piece.body += kSseDone;
      piece.done = true;
    }
  }

  void add_whole(Piece& piece, ChatChunk chunk) {
    const bool last = chunk.is_terminal();
    whole_.add(std::move(chunk));
    if (!last) return;
    piece.head = with_ignored({200, {{"Content-Type", "application/json"}}, whole_.body()});
    piece.done = true;
    record_->set_status(200);
  }

  HttpResponse with_ignored(HttpResponse response) const {
    if (!ignored_.empty()) response.add_header("X-Chimere-Ignored", ignored_);
    return response;
  }

  const ResponseHead head_;
  const bool is_stream_;
  const bool include_usage_;
  const std::string ignored_;
  std::unique_ptr<ChatStream> stream_;
  WholeResponse whole_;
  std::unique_ptr<RequestRecord> record_;
  bool head_sent_ = false;
};

}  // namespace

std::unique_ptr<Answer> chat_answer(ChatService& service, ChatCall call, Wake wake,
                                    std::unique_ptr<RequestRecord> record) {
  ResponseHead head;
  head.id = new_id();
  head.model = call.model.empty() ? service.model_name() : call.model;
  head.created = static_cast<int64_t>(std::time(nullptr));
  head.logprobs = call.request.logprobs;
  auto stream = service.start(std::move(call.request), std::move(wake));
  return std::make_unique<ChatAnswer>(std::move(head), call, std::move(stream), std::move(record));
}

}  // namespace chimere::server
