// job_answer.h  The answer to a call whose work is done by a thread of the orchestrator: it waits for the result and
// writes it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "orchestrator/token_job.h"
#include "server/http/api_error.h"
#include "server/http/http.h"
#include "server/http/request_record.h"

namespace chimere::server {

template <class T>
class JobAnswer : public Answer {
 public:
  using Job = std::unique_ptr<orchestrator::ServiceJob<T>>;
  using Writer = std::function<HttpResponse(const T&)>;
  using Failure = ApiError (*)(const Error&);

  // `ignored`: fields of the request that nobody has read.
  JobAnswer(Job job, std::unique_ptr<RequestRecord> record, Writer write, Failure fail = to_api_error,
            std::string ignored = {})
      : job_(std::move(job)),
        record_(std::move(record)),
        write_(std::move(write)),
        fail_(fail),
        ignored_(std::move(ignored)) {}

  Piece poll() override {
    Piece piece;
    const auto result = job_->poll();
    if (!result) return piece;
    piece.head = *result ? write_(**result) : error_response(fail_(result->error()));
    if (!ignored_.empty()) piece.head->add_header("X-Chimere-Ignored", ignored_);
    piece.done = true;
    record_->set_status(piece.head->status);
    return piece;
  }

 private:
  const Job job_;
  const std::unique_ptr<RequestRecord> record_;
  const Writer write_;
  const Failure fail_;
  const std::string ignored_;
};

}  // namespace chimere::server
