// batch_json.h  Files and batches in the words of OpenAI's API, which is how batches lie on the disk, too.
#pragma once

#include <optional>
#include <string>

#include "server/batch/batch_store.h"
#include "server/http/json.h"

namespace chimere::server {

Json file_json(const StoredFile& file);
std::optional<StoredFile> file_from(const Json& json);
Json batch_json(const Batch& batch);
// Nullopt: it is none. The owner is not in it.
std::optional<Batch> batch_from(const Json& json);

}  // namespace chimere::server
