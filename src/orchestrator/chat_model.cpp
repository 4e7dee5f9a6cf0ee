// chat_model.cpp  What a file brings for talking, and what is missing.
#include "orchestrator/chat_model.h"

#include <algorithm>
#include <array>
#include <random>

#include "chat/named_templates.h"
#include "engram/library.h"
#include "models/same_vocabulary.h"
#include "orchestrator/embedder.h"
#include "retrieval/passage_library.h"
#include "tokenizer/fingerprint.h"

namespace chimere::orchestrator {
namespace {

// Where a repetition may begin anew, unless the request says otherwise: the DRY sampler's customary list.
constexpr std::array<const char*, 4> kDryBreakers = {"\n", ":", "\"", "*"};

// All tokens whose text contains one of the breakers.
std::vector<int32_t> breaker_ids(const std::vector<std::string>& asked, const Tokenizer& tokenizer) {
  std::vector<std::string> breakers = asked;
  if (breakers.empty()) breakers.assign(kDryBreakers.begin(), kDryBreakers.end());
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokenizer.n_vocab(); ++id) {
    const std::string_view text = tokenizer.token_text(id);
    const bool breaks = std::any_of(breakers.begin(), breakers.end(), [&](const std::string& breaker) {
      return text.find(breaker) != std::string_view::npos;
    });
    if (breaks) ids.push_back(id);
  }
  return ids;
}

uint64_t random_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

// Empty for a base model, which continues text.
Result<std::string_view> template_source(const gguf::Metadata& metadata, const Tokenizer& tokenizer,
                                         std::vector<std::string>& warnings) {
  if (metadata.contains("tokenizer.chat_template")) return metadata.get_string("tokenizer.chat_template");
  if (tokenizer.find_token("<|im_start|>") >= 0 && tokenizer.find_token("<|im_end|>") >= 0) {
    warnings.push_back("the file has no chat template; its vocabulary has <|im_start|>, so ChatML is used");
    return chat::named_template("chatml");
  }
  warnings.push_back(
      "the file has no chat template (tokenizer.chat_template): it continues text and answers no messages; give one "
      "with --chat-template FILE, or look for an instruct or chat version of the model");
  return std::string_view();
}

Result<chat::ChatTemplate> parse_template(std::string_view source, const Tokenizer& tokenizer) {
  const SpecialIds& ids = tokenizer.special_ids();
  auto parsed = chat::ChatTemplate::create(source, std::string(tokenizer.token_text(ids.bos)),
                                           std::string(tokenizer.token_text(ids.eos)));
  if (!parsed) return Error{parsed.error().code, "chat template: " + parsed.error().message};
  return parsed;
}

}  // namespace

Result<SamplingParams> recommended_sampling(const gguf::Metadata& metadata) {
  SamplingParams params;
  auto number = [&](const char* key, float& out) -> Status {
    TRY_ASSIGN(const double value, metadata.get_float_or(key, out));
    out = static_cast<float>(value);
    return Ok{};
  };
  auto integer = [&](const char* key, int& out) -> Status {
    TRY_ASSIGN(const int64_t value, metadata.get_int_or(key, -1, INT32_MAX, out));
    out = static_cast<int>(value);
    return Ok{};
  };
  TRY(number("general.sampling.temp", params.temperature));
  TRY(integer("general.sampling.top_k", params.top_k));
  TRY(number("general.sampling.top_p", params.top_p));
  TRY(number("general.sampling.min_p", params.min_p));
  TRY(number("general.sampling.penalty_repeat", params.repetition_penalty));
  TRY(integer("general.sampling.penalty_last_n", params.penalty_last_n));
  if (Status s = params.validate(INT32_MAX); !s) {
    return Error{Code::corrupt, "general.sampling of the file: " + s.error().message};
  }
  return params;
}

void ChatModel::open_memories(const std::string& folder, const std::string& shipped,
                              const retrieval::NoteLimits& limits) {
  const engram::Vocabulary vocabulary{vocabulary_fingerprint(tokenizer), static_cast<uint32_t>(tokenizer.n_vocab())};
  memory.tables = std::make_shared<engram::Library>(folder, vocabulary, shipped);
  for (const Error& error : memory.tables->check()) warnings.push_back(error.message);
  if (folder.empty()) return;
  memory.passages = std::make_shared<retrieval::PassageLibrary>(folder);
  memory.notes = std::make_shared<retrieval::NoteLibrary>(folder, limits);
  for (const Error& error : memory.notes->check()) warnings.push_back(error.message);
}

Result<std::shared_ptr<const AdapterSet>> ChatModel::adapters_for(const std::vector<AdapterUse>& uses) const {
  if (uses.empty()) return std::shared_ptr<const AdapterSet>();
  auto all = std::make_shared<AdapterSet>();
  for (const AdapterUse& use : uses) {
    if (use.held) {
      all->uses.push_back({use.held, use.scale.value_or(1.0f)});
      continue;
    }
    const auto set = adapters->set_of({{use.name, use.scale}});
    // As with any other field that names what is not there.
    if (!set) return Error{Code::invalid_argument, "lora: " + set.error().message};
    all->uses.insert(all->uses.end(), (*set)->uses.begin(), (*set)->uses.end());
  }
  return std::shared_ptr<const AdapterSet>(std::move(all));
}

std::vector<int32_t> ChatModel::suppressed_ids() const {
  std::vector<int32_t> ids = tokenizer.unused_ids();
  ids.insert(ids.end(), tokenizer.suppress_ids().begin(), tokenizer.suppress_ids().end());
  for (int32_t id = tokenizer.n_vocab(); id < model->n_vocab(); ++id) ids.push_back(id);
  return ids;
}

engine::Request generation_request(const GenerateOptions& options, const Tokenizer& tokenizer) {
  engine::Request request;
  request.sampling = options.sampling;
  request.sampling.seed = options.seed ? *options.seed : random_seed();
  request.sampling.stats = options.logprobs;
  for (const TextBias& biased : options.text_biases) {
    for (const int32_t id : tokenizer.encode(biased.text, EncodeMode::plain, false)) {
      request.sampling.logit_bias.push_back({id, biased.bias});
    }
  }
  request.token_stats = options.token_stats;
  request.tells_progress = options.tells_progress;
  request.speculate = options.speculation;
  if (options.sampling.dry_multiplier > 0) {
    request.sampling.dry_sequence_breakers = breaker_ids(options.dry_sequence_breakers, tokenizer);
  }
  request.max_tokens = options.max_tokens;
  request.deadline = options.deadline;
  request.stop_ids = tokenizer.eog_ids();
  request.owner = options.owner;
  request.cache_scope = options.cache_scope;
  return request;
}

Status ChatModel::add_draft_model(std::unique_ptr<models::Model> draft) {
  TRY(draft->require_logits());
  TRY(models::check_same_vocabulary(model->metadata(), draft->metadata()));
  draft_model = std::move(draft);
  return Ok{};
}

Result<ChatModel> ChatModel::from_model(std::unique_ptr<models::Model> model, const std::string& template_text) {
  const gguf::Metadata& metadata = model->metadata();
  auto tokenizer = Tokenizer::from_metadata(metadata);
  if (!tokenizer) {
    return Error{tokenizer.error().code, "this file can not be talked to: " + tokenizer.error().message};
  }
  Defaults defaults;
  TRY_ASSIGN(defaults.sampling, recommended_sampling(metadata));
  TRY_ASSIGN(const int64_t thinking_budget, metadata.get_int_or("chimere.thinking_budget", 0, INT32_MAX, -1));
  std::vector<std::string> warnings = tokenizer->warnings();
  std::optional<chat::ChatTemplate> chat_template, tool_template;
  if (!template_text.empty()) {
    TRY_ASSIGN(chat_template, parse_template(template_text, *tokenizer));
  } else {
    TRY_ASSIGN(const std::string_view source, template_source(metadata, *tokenizer, warnings));
    if (!source.empty()) {
      TRY_ASSIGN(chat_template, parse_template(source, *tokenizer));
    }
    if (const auto named = metadata.get_string("tokenizer.chat_template.tool_use")) {
      TRY_ASSIGN(tool_template, parse_template(*named, *tokenizer));
    }
  }
  for (const auto* used : {&chat_template, &tool_template}) {
    if (*used && !(*used)->warning().empty()) warnings.push_back((*used)->warning());
  }
  TRY_ASSIGN(const engine::Pooling pooling, pooling_of(*model));
  ChatModel chat_model{std::move(model),         *tokenizer, std::move(chat_template),
                       std::move(tool_template), defaults,   static_cast<int32_t>(thinking_budget),
                       std::move(warnings)};
  chat_model.pooling = pooling;
  chat_model.adapters = std::make_shared<models::AdapterLibrary>(*chat_model.model);
  return Result<ChatModel>{std::move(chat_model)};
}

}  // namespace chimere::orchestrator
