#include "odo/routing/service_hooks.h"

#include <utility>

namespace chimere::odo {

void lend_vectors(orchestrator::Embedder& embedder, const ModelCall& call, RouteHooks& hooks) {
  hooks.embedder = embedder.model_fingerprint();
  hooks.embed = [&embedder, call](const std::vector<std::string>& texts) -> Result<RouteVectors> {
    orchestrator::EmbedCall asked;
    for (const std::string& text : texts) asked.inputs.push_back(embedder.cut_to_fit(text));
    asked.owner = call.owner;
    asked.deadline = call.deadline;
    TRY_ASSIGN(orchestrator::Embedded embedded, embedder.embed_now(std::move(asked)));
    return Result<RouteVectors>{std::move(embedded.vectors)};
  };
}

void lend_model(orchestrator::ChatService& service, const ModelCall& call, RouteHooks& hooks) {
  hooks.model = service.embedder().model_fingerprint();
  hooks.ask_model = [&service, call](const std::vector<NamedRules>& routes, std::string_view question) {
    return ask_model(service, routes, question, call);
  };
}

}  // namespace chimere::odo
