// collection_desk.h  Collections of documents of a server, whatever models it has.
#pragma once

#include <chrono>
#include <memory>

#include "server/endpoints.h"

namespace chimere::server {

struct CollectionDesk {
  std::shared_ptr<retrieval::Collections> collections;  // null: there are none, and no paths for them
  std::shared_ptr<BatchStore> files;                    // of which documents may be made; null: there are none
  Monitor* monitor = nullptr;                           // never null
  std::chrono::milliseconds timeout{0};                 // of a search; 0: any
  size_t max_body_bytes = 0;
};

void add_collection_endpoints(Router& router, const CollectionDesk& desk);

}  // namespace chimere::server
