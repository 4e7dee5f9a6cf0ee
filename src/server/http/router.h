// router.h  The table of routes: which method and path belong to which handler. Families of endpoints fill it
// (endpoints.h); routes.h asks it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http.h"
#include "server/http/request_record.h"

namespace chimere::server {

// A request that was let in, on its way to a handler.
struct Call {
  HttpRequest request;
  std::string parameter;  // what stood for {id} in the path
  Wake wake;
  // Belongs to the answer, which says there what became of the request; its end writes the log line.
  std::unique_ptr<RequestRecord> record;
};

using RouteHandler = std::function<std::unique_ptr<Answer>(Call)>;

struct Route {
  std::string method;
  std::string path;  // one segment of it may be "{id}", which stands for any text without '/'
  RouteHandler handler;
  bool needs_key = true;
  bool is_polled = false;  // asked for again and again by those who watch: only failures are logged
};

class Router {
 public:
  void add(Route route);

  struct Match {
    const Route* route = nullptr;
    std::string parameter;
    std::string allowed;  // methods of the routes of that path, "GET, POST"; empty: there is no such path
  };
  // HEAD finds the route of GET.
  Match find(std::string_view method, std::string_view path) const;

 private:
  std::vector<Route> routes_;
};

// Answers with `response` and lets the record say so.
std::unique_ptr<Answer> answer_now(Call& call, HttpResponse response);

}  // namespace chimere::server
