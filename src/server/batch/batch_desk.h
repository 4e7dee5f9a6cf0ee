// batch_desk.h  Files and batches of a server, whatever models it has.
#pragma once

#include <memory>

#include "server/endpoints.h"

namespace chimere::server {

struct BatchDesk {
  std::shared_ptr<BatchStore> batches;  // null: none are taken, and there are no paths for them
  std::shared_ptr<Workers> workers;
};

void add_batch_endpoints(Router& router, const BatchDesk& desk);

}  // namespace chimere::server
