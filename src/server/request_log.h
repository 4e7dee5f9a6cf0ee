// request_log.h  One line in the log for each request, written when its answer ends.
#pragma once

#include <chrono>
#include <string>

#include "engine/event.h"

namespace chimere::server {

class RequestLog {
 public:
  RequestLog(std::string method, std::string path);
  // Writes the line. A status of 0 means that the client left before there was one.
  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  void set_status(int status) { status_ = status; }
  void set_usage(const engine::Usage& usage, const char* finish);

 private:
  std::string method_;
  std::string path_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int status_ = 0;
  engine::Usage usage_;
  const char* finish_ = "";
};

}  // namespace chimere::server
