// llama_response.h  Answers of POST /completion in llama.cpp's shape, whole or as events.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/http/json.h"
#include "server/protocols/shared/response_writer.h"

namespace chimere::server {

struct LlamaHead {
  std::string model;
  Json settings;
  int context_length = 0;
  bool is_list = false;
  bool probabilities = false;
  bool return_tokens = false;
  std::vector<std::string> fields;
};

std::unique_ptr<ResponseWriter> llama_writer(LlamaHead head);

}  // namespace chimere::server
