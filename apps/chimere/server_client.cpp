#include "server_client.h"

#include <chrono>
#include <utility>

#include "terminal/signals.h"
#include "text/json.h"

namespace chimere::apps {
namespace {

constexpr std::chrono::seconds kLongestAnswer{5};
constexpr std::chrono::seconds kLongestWork{90};  // the server gives up after 60
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
  request.limits.total = kLongestAnswer;
  request.is_cancelled = [] { return asked_to_end(); };
  return ask(path, std::move(request));
}

Result<std::string> ServerClient::post(const char* path, std::string body, std::function<bool()> is_cancelled) const {
  web::HttpRequest request;
  request.method = "POST";
  request.body = std::move(body);
  request.headers.push_back({"Content-Type", "application/json"});
  request.limits.total = kLongestWork;
  request.is_cancelled = std::move(is_cancelled);
  return ask(path, std::move(request));
}

Result<std::string> ServerClient::ask(const char* path, web::HttpRequest request) const {
  request.url = address_.url + path;
  if (!address_.api_key.empty()) request.headers.push_back({"Authorization", "Bearer " + address_.api_key});
  request.limits.connect = kLongestAnswer;
  request.limits.body_bytes = kMaxAnswerBytes;
  auto answer = client_.exchange(request);
  if (!answer) {
    return Error{answer.error().code, "no server answers at " + address_.url + ": " + answer.error().message +
                                          " (`chimere serve` starts one, " + option_ + " names another)"};
  }
  if (answer->status == 200 || answer->status == 202) return std::move(answer->body);
  const std::string said = "the server at " + address_.url + " says " + std::to_string(answer->status) + " to " + path;
  if (answer->status == 401) return Error{Code::invalid_argument, said + ": expected its key (--api-key)"};
  const auto json = parse_json(answer->body);
  const bool explains = json && json->is_object() && json->contains("error") && (*json)["error"].is_object() &&
                        (*json)["error"].contains("message") && (*json)["error"]["message"].is_string();
  return Error{Code::io, said + (explains ? ": " + (*json)["error"]["message"].get<std::string>() : "")};
}

}  // namespace chimere::apps
