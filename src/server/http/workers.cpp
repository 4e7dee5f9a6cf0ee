// workers.cpp  What a client is told when a worker could not do its part.
#include "server/http/workers.h"

namespace chimere::server {

ApiError failed_work(const Error& error) {
  if (error.code == Code::exhausted) return {503, error.message, "server_error", "", "out_of_memory"};
  return to_api_error(error);
}

}  // namespace chimere::server
