// model_info.h  The facts of a model, for people and programs that will never see a tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chimere::orchestrator {

struct ChatModel;

struct ModelInfo {
  struct Layer {
    std::string mixer;  // "gdn", "attention", ...; "none" where there is only a feed-forward part
    std::string ffn;    // "dense", "moe", "none"
  };
  struct Format {
    std::string type;  // "Q4_K"
    uint64_t tensors = 0;
    uint64_t bytes = 0;
  };

  std::string name;
  std::string architecture;
  std::string backend;
  uint64_t file_bytes = 0;
  uint64_t parameters = 0;  // that the program computes with: without draft blocks, which `chimere inspect` counts too
  int context_length = 0;   // what the model was made for
  int vocabulary = 0;
  int experts = 0;  // 0 without mixture
  int experts_used = 0;
  bool chat = false;      // it answers messages
  bool thinking = false;  // it can be told to think or not to
  bool tools = false;
  // Where the weights went on a machine with a card: in words, and by place. Without one there are no words.
  struct Places {
    std::string text;
    int expert_layers = 0;
    int expert_layers_in_ram = 0;
    int layers_in_ram = 0;  // of their other weights
    uint64_t ram_bytes = 0;
    uint64_t card_bytes = 0;
    uint64_t card_budget_bytes = 0;
  } placement;
  std::vector<Layer> layers;
  std::vector<Format> formats;  // most bytes first
};

ModelInfo describe_model(const ChatModel& model);

}  // namespace chimere::orchestrator
