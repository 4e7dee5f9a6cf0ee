// request_desk.h  Requests under way, of one model or of several: listed, cancelled, told to stop thinking, wherever they run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/endpoints.h"
#include "server/http/json.h"

namespace chimere::server {

struct RequestDesk {
  // Shows each model that has requests, with its name. Looked at while the call lasts.
  std::function<void(const std::function<void(const Services&, const std::string& model)>& look)> each;
  // Those that are with no model yet, as entries of the list; empty: there are none.
  std::function<std::vector<Json>()> outside = {};
  // Whether one of them had this id, and is cancelled now.
  std::function<bool(const std::string& id)> cancel_outside = {};
};

void add_request_endpoints(Router& router, const RequestDesk& desk);

}  // namespace chimere::server
