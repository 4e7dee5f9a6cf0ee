// page.h  The web page inside the program: its files, compressed, and how a browser is told to treat them. The page
// speaks the public HTTP API and nothing else, so these files are all that is particular to it here.
#pragma once

#include <span>
#include <string_view>

#include "server/http/http.h"

namespace chimere::server {

struct PageFile {
  std::string_view path;  // below /studio/: "index.html", "assets/index-C0ffee.js"
  std::string_view type;  // of its content, with the character set
  std::string_view etag;  // with its quotes
  std::string_view gzip;  // the bytes; kept compressed only
};

// What was built with the program; empty when it was built without the page. Written by studio/embed.mjs.
std::span<const PageFile> embedded_page();

// The answer to a GET of "/", "/studio" or anything below it.
HttpResponse page_response(const HttpRequest& request, std::span<const PageFile> files);

}  // namespace chimere::server
