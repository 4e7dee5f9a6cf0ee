// request_record.h  One request from its head to the end of its answer: listed while it is under way, counted and
// logged when it ends. Made and destroyed on the I/O thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/event.h"
#include "orchestrator/answer_stream.h"
#include "server/http/api_error.h"
#include "server/http/http.h"
#include "server/http/monitor.h"
#include "server/tracing/span.h"

namespace chimere::server {

class RequestRecord {
 public:
  using Clock = Monitor::Clock;

  // `route`: the path as the table of routes writes it; empty: none of them.
  RequestRecord(const HttpRequest& request, std::string route, Monitor& monitor);
  // Writes the line. A status of 0 means that the client left before there was one.
  ~RequestRecord();
  RequestRecord(const RequestRecord&) = delete;
  RequestRecord& operator=(const RequestRecord&) = delete;

  // Says what becomes of the request.
  void set_status(int status) { status_ = status; }
  void set_usage(const engine::Usage& usage, const char* finish);
  // An answer is over, now; for traces. Of a run its steps are told instead.
  void end_answer(const orchestrator::ChatChunk& last);
  void set_user(std::string user) { user_ = std::move(user); }
  // Who may later say that the answer was good, and the answer as it comes.
  void set_owner(std::string owner) { owner_ = std::move(owner); }
  void add_answer(std::string_view text);
  // All of it is there. Before the client has its last byte: it may ask for it at once.
  void keep_answer();
  // From here on the request is listed and can be cancelled. The stream outlives the record.
  void watch(orchestrator::AnswerStream& stream) { streams_.push_back(&stream); }
  // The same for work that is no stream: it can be cancelled.
  void watch(std::function<void()> cancel) { cancel_work_ = std::move(cancel); }
  // How long the reader of the stream has taken nothing of what waits for it.
  void set_unread(Clock::duration time) { unread_ = time; }
  Clock::duration unread() const { return unread_; }
  // A success is not worth a line.
  void log_failures_only() { failures_only_ = true; }

  enum class CancelledBy { nobody, a_call, shutdown, no_reader };
  void cancel(CancelledBy who);
  // What the client of a cancelled request is told.
  ApiError cancel_error() const;

  const std::string& id() const { return id_; }
  const std::string& path() const { return path_; }
  const std::string& client() const { return client_; }
  const std::string& user() const { return user_; }
  Clock::time_point started() const { return start_; }
  bool can_be_cancelled() const { return !streams_.empty() || cancel_work_; }
  bool is_cancelled() const { return cancelled_by_ != CancelledBy::nobody; }
  const std::vector<orchestrator::AnswerStream*>& streams() const { return streams_; }

 private:
  void count(double seconds);
  void count_for_key();
  void write_line(double seconds) const;
  void trace() const;
  std::optional<Clock::time_point> first_token_time() const;
  double first_token_seconds() const;  // negative: there was none

  Monitor& monitor_;
  const std::string id_;
  const std::string client_;
  const std::string method_;
  const std::string path_;
  const std::string route_;
  const Clock::time_point start_ = Clock::now();
  const std::optional<TraceParent> trace_parent_;
  const std::optional<TraceId> trace_;  // none where nobody asks for it
  std::string user_;
  std::string owner_;
  std::string answer_;  // at most one byte more than RecentAnswers takes
  std::vector<orchestrator::AnswerStream*> streams_;
  std::function<void()> cancel_work_;
  Clock::duration unread_{0};
  bool failures_only_ = false;
  int status_ = 0;
  CancelledBy cancelled_by_ = CancelledBy::nobody;
  engine::Usage usage_;
  std::string finish_;
  std::vector<orchestrator::ModelTime> answers_;
  std::vector<orchestrator::RunReport> runs_;
};

}  // namespace chimere::server
