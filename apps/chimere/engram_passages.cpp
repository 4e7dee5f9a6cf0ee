// engram_passages.cpp  chimere engram passages: texts found again by what they mean. A model embeds them; the nearest
// ones to a query are given with the n-grams they share with it.
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "common.h"
#include "orchestrator/embedder.h"
#include "retrieval/passage_index.h"
#include "retrieval/shared_ngrams.h"

namespace chimere::apps {
namespace {

using Json = nlohmann::ordered_json;
using retrieval::PassageIndex;

constexpr int kMaxNgram = 8;          // as in tables
constexpr size_t kShownNgrams = 5;    // a passage
constexpr size_t kTextsAtATime = 64;  // embedded by one call

struct PassageOptions {
  ModelOptions model;
  std::string file;
  std::vector<std::string> inputs;
  std::string source;
  std::string query;
  size_t max_bytes = 800;
  int k = 3;
  bool json = false;
};

using EmbeddingModelPtr = std::unique_ptr<orchestrator::EmbeddingModel>;

Result<EmbeddingModelPtr> open_model(const PassageOptions& o) {
  TRY_ASSIGN(auto model, load_model(o.model));
  engine::EngineConfig config;
  config.cache.ram_bytes = 0;
  return orchestrator::EmbeddingModel::open(std::move(model), std::move(config));
}

Result<engine::Vectors> embed(orchestrator::Embedder& embedder, std::span<const std::string> texts) {
  orchestrator::EmbedCall call;
  for (const std::string& text : texts) call.inputs.push_back(embedder.cut_to_fit(text));
  TRY_ASSIGN(orchestrator::Embedded done, embedder.embed_now(std::move(call)));
  return Result<engine::Vectors>{std::move(done.vectors)};
}

Status add_passages(const PassageOptions& o) {
  TRY_ASSIGN(const EmbeddingModelPtr model, open_model(o));
  orchestrator::Embedder& embedder = model->embedder();
  std::vector<retrieval::Passage> passages;
  std::vector<std::string> texts;
  for (const std::string& path : o.inputs) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return Error{Code::io, path + ": can not be opened"};
    const std::string all(std::istreambuf_iterator<char>(in), {});
    for (std::string& text : retrieval::cut_passages(all, o.max_bytes)) {
      passages.push_back({o.source.empty() ? path : o.source, text});
      texts.push_back(std::move(text));
    }
  }
  engine::Vectors vectors;
  for (size_t at = 0; at < texts.size(); at += kTextsAtATime) {
    const size_t n = std::min(kTextsAtATime, texts.size() - at);
    TRY_ASSIGN(engine::Vectors some, embed(embedder, std::span(texts).subspan(at, n)));
    for (auto& vector : some) vectors.push_back(std::move(vector));
  }
  size_t n_all = 0;
  TRY(retrieval::edit_passages(o.file, embedder.model_fingerprint(), embedder.dimensions(),
                               [&](PassageIndex& index) -> Status {
                                 for (size_t i = 0; i < passages.size(); ++i) {
                                   TRY(index.add(std::move(passages[i]), vectors[i]));
                                 }
                                 n_all = index.size();
                                 return Ok{};
                               }));
  std::printf("%s: %zu passages added, %zu in all\n", o.file.c_str(), texts.size(), n_all);
  return Ok{};
}

Json match_json(const PassageIndex::Match& match, const Tokenizer& tokenizer, const std::vector<int32_t>& query) {
  const std::vector<int32_t> ids = tokenizer.encode(match.passage->text, EncodeMode::plain, false);
  Json ngrams = Json::array();
  for (const retrieval::SharedNgram& shared : retrieval::shared_ngrams(query, ids, kMaxNgram, kShownNgrams)) {
    const std::span<const int32_t> tokens(ids.data() + shared.position, static_cast<size_t>(shared.order));
    Json entry = {{"tokens", std::vector<int32_t>(tokens.begin(), tokens.end())},
                  {"text", tokenizer.decode(tokens, false)}};
    entry["next"] = shared.next < 0 ? Json(nullptr) : Json(std::string(tokenizer.token_text(shared.next)));
    ngrams.push_back(std::move(entry));
  }
  return {{"score", match.score},
          {"source", match.passage->source},
          {"text", match.passage->text},
          {"ngrams", std::move(ngrams)}};
}

std::string shown(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Status query_passages(const PassageOptions& o) {
  TRY_ASSIGN(const EmbeddingModelPtr model, open_model(o));
  orchestrator::Embedder& embedder = model->embedder();
  TRY_ASSIGN(const PassageIndex index, PassageIndex::open(o.file, embedder.model_fingerprint(), embedder.dimensions()));
  TRY_ASSIGN(const engine::Vectors vectors, embed(embedder, {&o.query, 1}));
  const std::vector<int32_t> ids = embedder.tokenizer().encode(o.query, EncodeMode::plain, false);
  Json json = Json::array();
  for (const auto& match : index.nearest(vectors[0], static_cast<size_t>(o.k))) {
    json.push_back(match_json(match, embedder.tokenizer(), ids));
  }
  if (o.json) {
    std::printf("%s\n", shown(json).c_str());
    return Ok{};
  }
  for (const Json& match : json) {
    std::printf("%.3f  %s: %s\n", match["score"].get<double>(), match["source"].get<std::string>().c_str(),
                match["text"].get<std::string>().c_str());
    for (const Json& ngram : match["ngrams"]) {
      std::printf("         %s, then %s\n", shown(ngram["text"]).c_str(), shown(ngram["next"]).c_str());
    }
  }
  return Ok{};
}

// Not with a model: what there is to forget or to count is known without its embeddings.
Status change_or_count(const PassageOptions& o, bool forgets) {
  TRY_ASSIGN(const retrieval::PassageHeader header, retrieval::passage_header(o.file));
  const auto dimensions = static_cast<int>(header.dimensions);
  if (!forgets) {
    TRY_ASSIGN(const PassageIndex index, PassageIndex::open(o.file, header.model, dimensions));
    std::map<std::string, size_t> by_source;
    for (const retrieval::Passage& passage : index.passages()) ++by_source[passage.source];
    std::printf("%zu passages of %d dimensions\n", index.size(), dimensions);
    for (const auto& [source, n] : by_source) std::printf("  %s: %zu\n", source.c_str(), n);
    return Ok{};
  }
  return retrieval::edit_passages(o.file, header.model, dimensions, [&](PassageIndex& index) -> Status {
    const size_t removed = index.forget(o.source);
    if (removed == 0) return Error{Code::not_found, o.file + ": no source is called '" + o.source + "'"};
    std::printf("removed %zu passages\n", removed);
    return Ok{};
  });
}

}  // namespace

void add_engram_passages(CLI::App& engram, Outcome& outcome) {
  auto o = std::make_shared<PassageOptions>();
  CLI::App* passages = engram.add_subcommand("passages", "Texts found again by what they mean");
  passages->require_subcommand(1);
  const auto verb = [&](const char* name, const char* description, std::function<Status(const PassageOptions&)> work) {
    CLI::App* command = passages->add_subcommand(name, description);
    command->add_option("file", o->file, "the file of passages")->required();
    command->callback([o, work = std::move(work), &outcome] {
      if (Status s = work(*o); !s) outcome.code = fail(s.error());
    });
    return command;
  };
  CLI::App* add = verb("add", "embed texts and keep them", add_passages);
  add_model_options(*add, o->model, false);
  add->add_option("--text", o->inputs, "UTF-8 files, cut at empty lines")->required();
  add->add_option("--source", o->source, "name under which they can be forgotten; the file's name when absent");
  add->add_option("--max-bytes", o->max_bytes, "of a passage; a longer one is cut between sentences")
      ->check(CLI::Range(size_t{16}, PassageIndex::kMaxTextBytes))
      ->capture_default_str();
  CLI::App* query = verb("query", "the passages nearest to a text, and the n-grams they share with it", query_passages);
  add_model_options(*query, o->model, false);
  query->add_option("text", o->query, "the text")->required();
  query->add_option("-k", o->k, "passages to show")->check(CLI::Range(1, 1000))->capture_default_str();
  query->add_flag("--json", o->json, "print one JSON array");
  CLI::App* forget =
      verb("forget", "remove what a source brought", [](const PassageOptions& p) { return change_or_count(p, true); });
  forget->add_option("--source", o->source, "the name of the source")->required();
  verb("stats", "what is in a file of passages", [](const PassageOptions& p) { return change_or_count(p, false); });
}

}  // namespace chimere::apps
