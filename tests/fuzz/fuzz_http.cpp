// fuzz_http.cpp  libFuzzer target: bytes as an HTTP request through the parser, the table of routes and the schemas,
// down to a tiny model. No sockets.
//
// The first byte says what the rest is: 'r' a whole request as it comes from a connection, a digit or letter the body
// of a POST to one of the paths below, so that bodies are reached without a correct head.
#include <spdlog/spdlog.h>

#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include "server/http/http_framing.h"
#include "server/http/json.h"
#include "server/http/request_head.h"
#include "server/http/request_id.h"
#include "server/routes.h"
#include "server/shelf/body_field.h"

namespace {

using namespace chimere;
using namespace chimere::server;

// Sixteen, so that '0' and the characters behind it in ASCII stand for them in their order.
constexpr const char* kPaths[] = {"/v1/chat/completions",
                                  "/v1/completions",
                                  "/v1/responses",
                                  "/v1/messages",
                                  "/tokenize",
                                  "/detokenize",
                                  "/v1/messages/count_tokens",
                                  "/v1/requests/x/cancel",
                                  "/api/chat",
                                  "/api/generate",
                                  "/api/embed",
                                  "/api/show",
                                  "/v1/embeddings",
                                  "/v1/rerank",
                                  "/completion",
                                  "/apply-template"};
static_assert(std::size(kPaths) == 16);

struct World {
  World() {
    spdlog::set_level(spdlog::level::off);
    LoadOptions options;
    options.max_rows = 64;
    auto model = models::Model::load(CHIMERE_TESTS_DIR "/golden/models/qwen3_5-A/model.gguf",
                                     models::BackendKind::reference, options);
    if (!model) std::abort();
    auto chat_model = orchestrator::ChatModel::from_model(std::move(*model));
    if (!chat_model) std::abort();
    engine::EngineConfig config;
    config.context_length = 256;
    config.prefill_tokens = 32;
    service = std::make_unique<orchestrator::ChatService>(std::move(*chat_model), config);
    routes = std::make_unique<Routes>(Services{*service, service->embedder(), monitor, "0", {}},
                                      std::make_shared<chimere::server::Access>(ApiKeys(), 0), WatchConfig{});
  }

  Monitor monitor;
  std::unique_ptr<orchestrator::ChatService> service;
  std::unique_ptr<Routes> routes;
};

// What a client could not read must never leave the server.
void check(const HttpResponse& response) {
  if (response.status < 200 || response.status > 599 || response.status == 500) std::abort();
  const std::string head = format_head(response, "id", Framing{}, true);
  for (const auto& [name, value] : response.headers) {
    if (name.find_first_of("\r\n: ") != std::string::npos || value.find_first_of("\r\n") != std::string::npos) {
      std::abort();
    }
  }
  if (response.status >= 400 && !parse_json(response.body)) std::abort();
}

bool parse(std::string_view bytes, HttpRequest& request) {
  namespace http = boost::beast::http;
  http::request_parser<http::string_body> parser;
  parser.eager(true);
  parser.header_limit(4096);
  parser.body_limit(4096);
  boost::system::error_code ec;
  while (!parser.is_done() && !bytes.empty()) {
    const size_t n = parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), ec);
    if (ec || n == 0) return false;
    bytes.remove_prefix(n);
  }
  if (!parser.is_header_done()) return false;
  request = request_head(parser);
  if (wrong_framing(request.headers, parser.get().version() >= 11)) return false;
  // Whoever else reads these bytes sees the same end of the request.
  if (!parser.get().has_content_length() && !parser.chunked() && parser.get().count("Transfer-Encoding") > 0) {
    std::abort();
  }
  request.body = parser.get().body();
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  HttpRequest request;
  if (data[0] == 'r') {
    if (!parse(rest, request)) return 0;
  } else {
    request.method = "POST";
    request.path = kPaths[data[0] % std::size(kPaths)];
    request.body = std::string(rest);
  }
  // What a server of several models looks for before anything else reads the body.
  if (const auto model = top_level_text(request.body, "model"); model && model->size() > request.body.size())
    std::abort();
  (void)keep_alive_of(top_level_value(request.body, "keep_alive"));
  request.id = request_id_or_new(request.header("X-Request-Id"));
  if (const auto refused = world.routes->refuse(request)) {
    check(*refused);
    return 0;
  }
  const std::unique_ptr<Answer> answer = world.routes->handle(std::move(request), [] {});
  const Piece piece = answer->poll();
  if (piece.head) check(*piece.head);
  return 0;
}
