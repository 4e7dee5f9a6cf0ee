// server_client.h  A server that runs, asked by another command.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "base/result.h"
#include "web/http_client.h"

namespace chimere::apps {

struct ServerAddress {
  std::string url = "http://127.0.0.1:8081";
  std::string api_key;
  std::string ca_file;
};

// All but the address, whose option is called otherwise from command to command.
void add_server_options(CLI::App& command, ServerAddress& o);

class ServerClient {
 public:
  // `option`: what names the address, for errors.
  ServerClient(const ServerAddress& address, const char* option);

  // The body of what the server answers; an error says what it says instead.
  Result<std::string> get(const char* path) const;
  // The same for a JSON body, which may be worked on for long. `is_cancelled` ends it; any thread.
  Result<std::string> post(const char* path, std::string body, std::function<bool()> is_cancelled) const;

 private:
  Result<std::string> ask(const char* path, web::HttpRequest request) const;

  const ServerAddress address_;
  const char* const option_;
  const web::HttpClient client_;
};

}  // namespace chimere::apps
