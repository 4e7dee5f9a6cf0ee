// page.cpp  Finds the file, and says what it may do.
#include "server/admin/page.h"

#include <string>

#include "server/http/api_error.h"

namespace chimere::server {
namespace {

constexpr std::string_view kFolder = "/studio/";
constexpr std::string_view kIndex = "index.html";
constexpr std::string_view kFrame = "frame.html";
constexpr std::string_view kWorker = "sw.js";    // serves the page when the server is gone, "/" included
constexpr std::string_view kHashed = "assets/";  // names that change with the content

// The page: own files and own server only, no inline script, no eval, no strings where script could hide.
constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify offline";

// The frame that shows what a model wrote: its script may run, but in an origin of its own, and nothing can be loaded
// or sent. The page's frame-src keeps it from navigating elsewhere.
constexpr std::string_view kFramePolicy =
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; media-src data: blob:; font-src data:; connect-src 'none'; frame-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

const PageFile* find_file(std::span<const PageFile> files, std::string_view name) {
  for (const PageFile& file : files) {
    if (file.path == name) return &file;
  }
  return nullptr;
}

std::string_view file_name(std::string_view path) {
  if (path.size() <= kFolder.size()) return kIndex;
  return path.substr(kFolder.size());
}

bool accepts_gzip(const HttpRequest& request) {
  return request.header("Accept-Encoding").find("gzip") != std::string_view::npos;
}

HttpResponse text(int status, std::string body) {
  return {
      status, {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}}, std::move(body)};
}

HttpResponse without_page(bool is_built) {
  return text(200,
              std::string("Chimère serves a language model here.\n\n") +
                  (is_built ? "Open this address in a browser to talk to it.\n"
                            : "This program was built without its web page: Node.js with npm was missing then.\n") +
                  "The API: /v1/models, /v1/chat/completions, /health\n");
}

}  // namespace

HttpResponse page_response(const HttpRequest& request, std::span<const PageFile> files) {
  const std::string_view name = file_name(request.path);
  if (name == kIndex && (files.empty() || !accepts_gzip(request))) return without_page(!files.empty());
  const PageFile* file = find_file(files, name);
  if (!file) {
    return error_response({404, "no such file of the page: " + request.path, "invalid_request_error", "", "not_found"});
  }
  if (!accepts_gzip(request)) return text(406, "expected a client that accepts gzip\n");
  const bool is_hashed = name.substr(0, kHashed.size()) == kHashed;
  HttpResponse response;
  response.headers = {
      {"Content-Type", std::string(file->type)},
      {"ETag", std::string(file->etag)},
      {"Vary", "Accept-Encoding"},
      {"Cache-Control", is_hashed ? "public, max-age=31536000, immutable" : "no-cache"},
      {"Content-Security-Policy", std::string(name == kFrame ? kFramePolicy : kPagePolicy)},
      {"X-Content-Type-Options", "nosniff"},
      {"X-DNS-Prefetch-Control", "off"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
  };
  if (name == kWorker) response.add_header("Service-Worker-Allowed", "/");
  if (request.header("If-None-Match") == file->etag) {
    response.status = 304;
    return response;
  }
  response.add_header("Content-Encoding", "gzip");
  response.body = std::string(file->gzip);
  return response;
}

}  // namespace chimere::server
