// What the tests of this folder share: the models they load and how long they are willing to wait.
#pragma once

#include <chrono>

namespace chimere::orchestrator {

inline constexpr const char* kTinyModel = CHIMERE_TESTS_DIR "/golden/models/qwen3_5-A/model.gguf";
inline constexpr const char* kModelInTheBox = CHIMERE_TESTS_DIR "/../assets/chimere-nano.gguf";
inline constexpr const char* kEncoderInTheBox = CHIMERE_TESTS_DIR "/../assets/chimere-embed.gguf";
inline constexpr std::chrono::milliseconds kLong{120'000};

}  // namespace chimere::orchestrator
