// service_hooks.h  What a running service lends to the router: its vectors, and its model.
#pragma once

#include "odo/routing/model_choice.h"
#include "odo/routing/router.h"
#include "orchestrator/embedder.h"

namespace chimere::odo {

// Vectors of examples and questions by this embedder, on the owner's account and up to the deadline of `call`. It
// outlives the hooks.
void lend_vectors(orchestrator::Embedder& embedder, const ModelCall& call, RouteHooks& hooks);

// The model's own choice. For models that can do it (docs/odo-routing.md). The service outlives the hooks.
void lend_model(orchestrator::ChatService& service, const ModelCall& call, RouteHooks& hooks);

}  // namespace chimere::odo
