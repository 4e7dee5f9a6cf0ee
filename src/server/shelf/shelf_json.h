// shelf_json.h  The models of a shelf in the words of OpenAI, llama.cpp and Ollama.
#pragma once

#include "server/http/json.h"
#include "server/shelf/model_shelf.h"

namespace chimere::server {

// {"object": "list", "data": [{"id", "status": {"value": "unloaded", "loading", "loaded" or "failed", ...}, ...}]}
Json shelf_models(ModelShelf& shelf);
// {"models": [...]} of /api/tags, and of /api/ps those that are loaded.
Json shelf_tags(ModelShelf& shelf);
Json shelf_running(ModelShelf& shelf);
Json shelf_health(ModelShelf& shelf);
// `models` of /v1/status: [{"name", "state", "progress", "error", "file_bytes", "ram_bytes", "vram_bytes", "users", "options",
// "has_new_options"}, ...]
Json shelf_states(ModelShelf& shelf);

}  // namespace chimere::server
