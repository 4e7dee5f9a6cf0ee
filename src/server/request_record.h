// request_record.h  One request from its head to the end of its answer: what the log says about it.
#pragma once

#include <chrono>
#include <string>

#include "engine/event.h"
#include "server/http.h"

namespace chimere::server {

class RequestRecord {
 public:
  explicit RequestRecord(const HttpRequest& request);
  // Writes the line. A status of 0 means that the client left before there was one.
  ~RequestRecord();
  RequestRecord(const RequestRecord&) = delete;
  RequestRecord& operator=(const RequestRecord&) = delete;

  const std::string& id() const { return id_; }
  void set_status(int status) { status_ = status; }
  void set_usage(const engine::Usage& usage, const char* finish);
  // A success is not worth a line.
  void log_failures_only() { failures_only_ = true; }

 private:
  std::string id_;
  std::string method_;
  std::string path_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool failures_only_ = false;
  int status_ = 0;
  engine::Usage usage_;
  const char* finish_ = "";
};

}  // namespace chimere::server
