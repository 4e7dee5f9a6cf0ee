// server_client.h  A server that runs, asked by another command.
#pragma once

#include <CLI/CLI.hpp>
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

 private:
  const ServerAddress address_;
  const char* const option_;
  const web::HttpClient client_;
};

}  // namespace chimere::apps
