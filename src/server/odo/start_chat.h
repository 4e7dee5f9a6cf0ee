// start_chat.h  Who answers a chat: the model, or the orchestrator where its name is asked for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "odo/odo.h"
#include "server/endpoints.h"

namespace chimere::server {

// The name that a request asks for: its own, but at the orchestrator's port `odo` for every name to which the model itself
// would answer.
std::string asked_name(const Services& services, const Call& call, const std::string& named);

// Whether that is the orchestrator's.
bool is_run(const Services& services, const std::string& asked);

// The field that names the model of a run, where there are several (shelf/lobby.h).
inline constexpr const char* kBaseModel = "base_model";
// Takes the names of fields out that were read for a run.
void drop_read(const Services& services, const std::string& asked, std::vector<std::string>& ignored);

// Why nobody answers to that name, or not so.
std::optional<ApiError> refuse_chat(const Services& services, const odo::Ask& ask, int n = 1);

// `answer_id`: the one that the answer's body has, by which its owner may speak of it later; empty: the request's alone.
// REQUIRES: refuse_chat() has nothing to say.
std::vector<std::unique_ptr<orchestrator::AnswerStream>> start_chat(const Services& services, const Call& call,
                                                                    odo::Ask ask, orchestrator::ChatRequest request,
                                                                    int n = 1, std::string answer_id = {});

// The name that the answer carries: the model's, or the one of a run as it was asked for.
std::string answering_name(const Services& services, const std::string& asked);

}  // namespace chimere::server
