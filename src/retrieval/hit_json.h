// hit_json.h  A hit as the API and the command show it. For .cpp files: the library's header is heavy.
#pragma once

#include "retrieval/collection_types.h"
#include "text/json.h"

namespace chimere::retrieval {

inline Json hit_json(const Hit& hit) {
  return {{"collection", hit.collection},
          {"document", hit.document},
          {"title", hit.title},
          {"heading", hit.heading},
          {"place", hit.place},
          {"score", hit.score},
          {"ranks", {{"words", hit.word_rank}, {"vectors", hit.vector_rank}}},
          {"text", hit.text}};
}

}  // namespace chimere::retrieval
