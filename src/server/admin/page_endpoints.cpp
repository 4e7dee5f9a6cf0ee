// page_endpoints.cpp  The web page. Its files ask for no key: they hold no secret, and a browser could not send one
// with a click on a link. The page asks its user for the key that its own requests need.
#include "server/admin/page.h"
#include "server/endpoints.h"

namespace chimere::server {

void add_page_endpoints(Router& router) {
  for (const char* path : {"/", "/studio", "/studio/", "/studio/{id}", "/studio/assets/{id}"}) {
    auto handler = [](Call call) { return answer_now(call, page_response(call.request, embedded_page())); };
    router.add({.method = "GET", .path = path, .handler = handler, .needs_key = false, .is_polled = true});
  }
}

}  // namespace chimere::server
