// llama_request.cpp  Prompts in all their shapes, and llama.cpp's names for settings.
#include "server/protocols/llama_request.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace chimere::server {

using orchestrator::CompletionRequest;

namespace {

constexpr size_t kMaxPromptList = 32;
constexpr size_t kMaxFields = 64;
constexpr size_t kMaxExtraFiles = 256;
constexpr float kNever = -std::numeric_limits<float>::infinity();

// {"prompt_string": TEXT}, which may name pictures beside it.
const Json* text_of_prompt(const Json& json) {
  if (json.is_string()) return &json;
  if (!json.is_object() || json.contains("multimodal_data")) return nullptr;
  const auto text = json.find("prompt_string");
  return text != json.end() && text->is_string() ? &*text : nullptr;
}

// Texts and ids in one list: what comes first begins as a prompt does. Prompts there are rendered by whoever asks, and
// the special tokens that a template writes are read as such.
bool read_mixed(const Json& list, const Tokenizer& tokenizer, CompletionRequest& request) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (is_token_id(list[i])) {
      request.prompt_ids.push_back(list[i].get<int32_t>());
    } else if (list[i].is_string()) {
      const std::string text = list[i].get<std::string>();
      const std::vector<int32_t> ids = tokenizer.encode(text, EncodeMode::special, i == 0);
      request.prompt_ids.insert(request.prompt_ids.end(), ids.begin(), ids.end());
    } else {
      return false;
    }
  }
  return !request.prompt_ids.empty();
}

void read_llama_prompts(JsonFields& fields, const Tokenizer& tokenizer, const CompletionRequest& alike,
                        LlamaCall& call) {
  constexpr const char* kExpected = "expected a text, a list of texts and token ids, or a list of such prompts";
  const Json* prompt = fields.find("prompt");
  if (!prompt) return fields.fail("prompt", std::string(kExpected) + ", found none");
  const auto add = [&](const Json& json) {
    CompletionRequest request = alike;
    if (const Json* text = text_of_prompt(json)) {
      request.prompt = text->get<std::string>();
      request.prompt_ids = tokenizer.encode(request.prompt, EncodeMode::special, true);
    } else if (!json.is_array() || !read_mixed(json, tokenizer, request)) {
      return fields.fail("prompt", std::string(kExpected) + ": this server reads text only");
    }
    call.prompts.push_back(std::move(request));
  };
  const bool has_ids = prompt->is_array() && std::any_of(prompt->begin(), prompt->end(), is_token_id);
  if (!prompt->is_array() || has_ids) return add(*prompt);
  call.is_list = true;
  if (prompt->empty() || prompt->size() > kMaxPromptList) {
    return fields.fail("prompt", "expected 1 to " + std::to_string(kMaxPromptList) + " prompts, found " +
                                     std::to_string(prompt->size()));
  }
  for (const Json& one : *prompt) add(one);
}

}  // namespace

Json llama_settings(const CompletionRequest& request) {
  const SamplingParams& s = request.sampling;
  Json json;
  json["n_predict"] = json["max_tokens"] = request.max_tokens;
  json["seed"] = request.seed ? Json(*request.seed) : Json(UINT32_MAX);
  json["temperature"] = s.temperature;
  json["top_k"] = s.top_k;
  json["top_p"] = s.top_p;
  json["min_p"] = s.min_p;
  json["repeat_last_n"] = s.penalty_last_n;
  json["repeat_penalty"] = s.repetition_penalty;
  json["presence_penalty"] = s.presence_penalty;
  json["frequency_penalty"] = s.frequency_penalty;
  json["dry_multiplier"] = s.dry_multiplier;
  json["dry_base"] = s.dry_base;
  json["dry_allowed_length"] = s.dry_allowed_length;
  json["dry_penalty_last_n"] = s.dry_penalty_last_n;
  json["stop"] = request.stop;
  json["grammar"] = request.form.grammar;
  return json;
}

namespace {

using ReadPrompts = void (*)(JsonFields& fields, const Tokenizer& tokenizer, const CompletionRequest& alike,
                             LlamaCall& call);

std::variant<LlamaCall, ApiError> parse_llama(std::string_view body, const orchestrator::Defaults& defaults,
                                              const Tokenizer& tokenizer, ReadPrompts read_prompts) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  LlamaCall call;
  CompletionRequest request;
  defaults.apply_to(request);
  JsonFields fields(std::get<OwnedJson>(parsed));
  read_call_options(fields, call);
  read_generation(fields, request);
  if (request.seed == std::numeric_limits<uint64_t>::max()) request.seed.reset();  // -1: a random one
  fields.number("repeat_penalty", request.sampling.repetition_penalty, 0.01, 100);
  fields.integer("repeat_last_n", request.sampling.penalty_last_n, -1, kMaxInt);
  read_stop(fields, "stop", request);
  int n_predict = request.max_tokens;
  fields.integer("max_tokens", n_predict, -1, kMaxInt);
  fields.integer("n_predict", n_predict, -1, kMaxInt);
  if (n_predict == 0) fields.fail("n_predict", "expected -1 or a number of tokens of at least 1, found 0");
  request.max_tokens = n_predict;
  fields.integer("n_probs", call.n_probs, 0, kMaxApiTopLogprobs);
  request.logprobs = call.n_probs > 0;
  request.sampling.top_logprobs = call.n_probs;
  fields.boolean("return_tokens", call.return_tokens);
  read_progress(fields, call.stream, request);
  request.token_ids = call.stream || call.return_tokens;
  bool ignores_end = false;
  fields.boolean("ignore_eos", ignores_end);
  if (ignores_end) {
    for (const int32_t id : tokenizer.eog_ids()) request.sampling.logit_bias.push_back({id, kNever});
  }
  call.fields = read_strings(fields, "response_fields", kMaxFields, 256);
  call.settings = llama_settings(request);
  call.settings["stream"] = call.stream;
  call.settings["n_probs"] = call.n_probs;
  call.settings["ignore_eos"] = ignores_end;
  request.show_prompt = true;
  if (fields.ok()) read_prompts(fields, tokenizer, request, call);
  if (!fields.ok()) return fields.error();
  for (std::string& name : fields.unknown()) call.ignored.push_back(std::move(name));
  return call;
}

void read_extra_files(JsonFields& fields, std::vector<orchestrator::FillIn::File>& files) {
  const Json* list = fields.array("input_extra");
  if (!list) return;
  if (list->size() > kMaxExtraFiles) {
    return fields.fail("input_extra", "expected at most " + std::to_string(kMaxExtraFiles) + " files, found " +
                                          std::to_string(list->size()));
  }
  for (const Json& file : *list) {
    const auto text = file.is_object() ? file.find("text") : file.end();
    if (!file.is_object() || text == file.end() || !text->is_string()) {
      return fields.fail("input_extra", "expected objects with a filename and a text, found " + to_text(file));
    }
    const Json name = file.value("filename", Json("tmp"));
    if (!name.is_string()) return fields.fail("input_extra", "expected a filename in words, found " + to_text(name));
    files.push_back({name.get<std::string>(), text->get<std::string>()});
  }
}

void read_gap(JsonFields& fields, const Tokenizer&, const CompletionRequest& alike, LlamaCall& call) {
  CompletionRequest request = alike;
  orchestrator::FillIn gap;
  std::string prompt;
  fields.string("input_prefix", request.prompt);
  fields.string("input_suffix", gap.suffix);
  fields.string("prompt", prompt);  // the line the cursor stands in, as far as it is written
  request.prompt += prompt;
  read_extra_files(fields, gap.files);
  request.gap = std::move(gap);
  call.prompts.push_back(std::move(request));
}

}  // namespace

std::variant<LlamaCall, ApiError> parse_llama_completion(std::string_view body, const orchestrator::Defaults& defaults,
                                                         const Tokenizer& tokenizer) {
  return parse_llama(body, defaults, tokenizer, read_llama_prompts);
}

std::variant<LlamaCall, ApiError> parse_llama_infill(std::string_view body, const orchestrator::Defaults& defaults,
                                                     const Tokenizer& tokenizer) {
  return parse_llama(body, defaults, tokenizer, read_gap);
}

}  // namespace chimere::server
