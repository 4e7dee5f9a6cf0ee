// sleep_endpoints.cpp  /sleep, /wake_up, /is_sleeping, by vLLM's names: the card is given to other programs for a while.
#include <utility>

#include "server/endpoints.h"
#include "server/http/json.h"
#include "server/job_answer.h"

namespace chimere::server {
namespace {

Json sleep_json(uint64_t bytes) { return Json{{"is_sleeping", bytes > 0}, {"freed_bytes", bytes}}; }

std::unique_ptr<Answer> put_to_sleep(const Services& services, Call call) {
  const auto write = [](const uint64_t& bytes) { return json_response(sleep_json(bytes)); };
  return std::make_unique<JobAnswer<uint64_t>>(services.chat.sleep(call.wake), std::move(call.record), write);
}

std::unique_ptr<Answer> wake_up(const Services& services, Call call) {
  const auto write = [](const Ok&) { return json_response(sleep_json(0)); };
  return std::make_unique<JobAnswer<Ok>>(services.chat.wake(call.wake), std::move(call.record), write);
}

}  // namespace

void add_sleep_endpoints(Router& router, const Services& services) {
  router.add({.method = "POST", .path = "/sleep", .handler = [services](Call call) {
                return put_to_sleep(services, std::move(call));
              }});
  router.add({.method = "POST", .path = "/wake_up", .handler = [services](Call call) {
                return wake_up(services, std::move(call));
              }});
  router.add({.method = "GET",
              .path = "/is_sleeping",
              .handler =
                  [services](Call call) {
                    return answer_now(call, json_response(sleep_json(services.chat.engine().stats().asleep_bytes)));
                  },
              .is_polled = true});
}

}  // namespace chimere::server
