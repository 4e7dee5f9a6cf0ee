// request_head.h  The head that Beast parsed, as the routes see it. For files that see Beast anyway.
#pragma once

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>

#include "server/http/http.h"

namespace chimere::server {

inline HttpRequest request_head(const boost::beast::http::request_parser<boost::beast::http::string_body>& parser) {
  HttpRequest request;
  const auto& head = parser.get();
  request.method = std::string(head.method_string());
  const std::string target(head.target());
  const size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string::npos) request.query = target.substr(question + 1);
  for (const auto& field : head) {
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  return request;
}

}  // namespace chimere::server
