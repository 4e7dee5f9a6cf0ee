// workers.h  Threads for the part of a request that would keep the I/O thread from all others: parsing a large body,
// writing a large answer.
//
// A handler that runs here sees nothing but what it was given. Requests are listed, started and answered on the I/O
// thread, as everything else.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/channel.h"
#include "base/job_threads.h"
#include "base/platform/memory_reserve.h"
#include "orchestrator/token_job.h"
#include "server/http/api_error.h"
#include "server/http/router.h"

namespace chimere::server {

// As many jobs wait as there are connections at most: each has one job at a time.
class Workers : public JobThreads {
 public:
  // Two: one large request does not wait for another, and more would only take the processor from the model.
  explicit Workers(int n_threads = 2) : JobThreads(n_threads) {}

  // The result of `work`; `wake` is called when it is there. Work whose reader left before it began is not done.
  template <class T>
  std::unique_ptr<orchestrator::ServiceJob<T>> run(std::function<Result<T>()> work, Wake wake) {
    auto channel = std::make_shared<Channel<Result<T>>>(std::move(wake));
    post([weak = std::weak_ptr(channel), work = std::move(work)]() mutable {
      const auto result = weak.lock();
      if (!result) return;
      try {
        result->put(keep_memory_reserve() ? work() : Result<T>(Error{Code::exhausted, kOutOfMemory}));
      } catch (const std::bad_alloc&) {
        result->put(Error{Code::exhausted, kOutOfMemory});
      } catch (const std::exception& e) {
        result->put(Error{Code::internal, e.what()});
      }
    });
    return std::make_unique<orchestrator::ServiceJob<T>>(std::move(channel));
  }
};

// What the client of work that failed is told.
ApiError failed_work(const Error& error);

// Bodies up to this size are parsed where they are: that takes a few milliseconds at most, whatever they contain, and
// most chats are shorter.
inline constexpr size_t kParsedAtOnceBytes = 16 << 10;

// An answer whose body is parsed by a worker before anything else happens. `Parsed`: std::variant<..., ApiError>.
template <class Parsed>
class ParsedLater : public Answer {
 public:
  using Parse = std::function<Parsed(const std::string& body)>;
  using Then = std::function<std::unique_ptr<Answer>(Call, Parsed&)>;
  using Result = std::shared_ptr<Parsed>;

  ParsedLater(std::shared_ptr<Workers> workers, Call call, Parse parse, Then then)
      : workers_(std::move(workers)), call_(std::move(call)), then_(std::move(then)) {
    auto body = std::make_shared<std::string>(std::move(call_.request.body));
    auto work = [body, parse = std::move(parse)]() -> chimere::Result<Result> {
      auto parsed = std::make_shared<Parsed>(parse(*body));
      *body = {};
      return parsed;
    };
    job_ = workers_->run<Result>(std::move(work), call_.wake);
  }

  Piece poll() override {
    if (!answer_) {
      auto parsed = job_->poll();
      if (!parsed) return {};
      Result result = *parsed ? std::move(**parsed) : std::make_shared<Parsed>(failed_work(parsed->error()));
      answer_ = then_(std::move(call_), *result);
      // What is left of it may be millions of values, which take their time to go.
      workers_->post([result = std::move(result)]() mutable { result.reset(); });
    }
    return answer_->poll();
  }

  void tick(std::chrono::steady_clock::duration unread) override {
    if (answer_) answer_->tick(unread);
  }

 private:
  const std::shared_ptr<Workers> workers_;
  Call call_;
  const Then then_;
  std::unique_ptr<orchestrator::ServiceJob<Result>> job_;
  std::unique_ptr<Answer> answer_;
};

// Parses the body of a call, here or on a worker, and goes on with `then` on the I/O thread.
template <class Parsed>
std::unique_ptr<Answer> parse_first(const std::shared_ptr<Workers>& workers, Call call,
                                    typename ParsedLater<Parsed>::Parse parse,
                                    typename ParsedLater<Parsed>::Then then) {
  if (call.request.body.size() > kParsedAtOnceBytes) {
    return std::make_unique<ParsedLater<Parsed>>(workers, std::move(call), std::move(parse), std::move(then));
  }
  Parsed parsed = parse(call.request.body);
  return then(std::move(call), parsed);
}

}  // namespace chimere::server
