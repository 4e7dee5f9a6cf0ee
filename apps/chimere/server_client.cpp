#include "server_client.h"

#include <chrono>
#include <utility>

#include "terminal/signals.h"
#include "text/json.h"

namespace chimere::apps {
namespace {

constexpr std::chrono::seconds kLongestAnswer{5};
constexpr size_t kMaxAnswerBytes = 16 << 20;

web::HttpClient::Options trust_of(const ServerAddress& address) {
  web::HttpClient::Options options;
  options.ca_file = address.ca_file;
  return options;
}

ServerAddress without_slashes(ServerAddress address) {
  while (address.url.ends_with('/')) address.url.pop_back();
  return address;
}

}  // namespace

void add_server_options(CLI::App& command, ServerAddress& o) {
  command.add_option("--api-key", o.api_key, "key that the server asks for; the variable keeps it out of `ps`")
      ->envname("CHIMERE_API_KEY");
  command.add_option("--ca", o.ca_file, "certificates to trust, in PEM form; else those of the system");
}

ServerClient::ServerClient(const ServerAddress& address, const char* option)
    : address_(without_slashes(address)), option_(option), client_(trust_of(address)) {}

Result<std::string> ServerClient::get(const char* path) const {
  web::HttpRequest request;
  request.url = address_.url + path;
  if (!address_.api_key.empty()) request.headers.push_back({"Authorization", "Bearer " + address_.api_key});
  request.limits.total = request.limits.connect = kLongestAnswer;
  request.limits.body_bytes = kMaxAnswerBytes;
  request.is_cancelled = [] { return asked_to_end(); };
  auto answer = client_.exchange(request);
  if (!answer) {
    return Error{answer.error().code, "no server answers at " + address_.url + ": " + answer.error().message +
                                          " (`chimere serve` starts one, " + option_ + " names another)"};
  }
  if (answer->status == 200) return std::move(answer->body);
  const std::string said = "the server at " + address_.url + " says " + std::to_string(answer->status) + " to " + path;
  if (answer->status == 401) return Error{Code::invalid_argument, said + ": expected its key (--api-key)"};
  const auto json = parse_json(answer->body);
  const bool explains = json && json->is_object() && json->contains("error") && (*json)["error"].is_object() &&
                        (*json)["error"].contains("message") && (*json)["error"]["message"].is_string();
  return Error{Code::io, said + (explains ? ": " + (*json)["error"]["message"].get<std::string>() : "")};
}

}  // namespace chimere::apps
