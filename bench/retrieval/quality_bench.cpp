// quality_bench.cpp  How well collections find what answers a question: nDCG@10 of words, of vectors and of both.
//
//   quality_bench MODEL medquad|fairytaleqa DATA.jsonl DATABASE [DOCUMENTS [QUESTIONS [THREADS [MATCHER]]]]
//
// medquad: documents are answers; right are those of the same question. fairytaleqa: documents are sections of tales;
// right is the section that a question was written for. Both are sets of questions by people (docs/retrieval.md has where
// they come from); files are the sets as JSON Lines. Embedders are the mean of MODEL's states, and the mean of its token
// embeddings. The weight of vectors in the fusion is fitted on half of the questions and measured on the other half; which
// half a question is in, and which documents take part, follows from hashes. With MATCHER the best are read again, once as the
// file of MODEL says how vectors count, once by words alone. 95 % intervals by the bootstrap over questions.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "gguf/gguf.h"
#include "orchestrator/collection_models.h"
#include "retrieval/collections.h"
#include "retrieval/matcher.h"
#include "tensor/dequantize.h"
#include "text/json.h"

namespace {

using namespace chimere;
using namespace chimere::retrieval;

constexpr const char* kCollection = "all";
constexpr size_t kRanked = 10;
constexpr double kWeights[] = {0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 4};
constexpr double kScoreWeights[] = {0, 1, 2, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 60};
constexpr int kResamples = 1000;

struct Question {
  std::string text;
  std::set<std::string> right;  // names of documents
};

struct Task {
  std::vector<std::pair<std::string, std::string>> documents;  // name and text
  std::vector<Question> fitted, measured;
};

Result<std::vector<Json>> read_lines(const std::string& path) {
  std::ifstream in(path);
  if (!in) return Error{Code::io, path + ": can not be opened"};
  std::vector<Json> rows;
  for (std::string line; std::getline(in, line);) {
    TRY_ASSIGN(Json row, parse_json(line));
    rows.push_back(std::move(row));
  }
  return Result<std::vector<Json>>{std::move(rows)};
}

void add_question(Task& task, Question question, size_t n_questions) {
  auto& half = hash64(question.text) % 2 == 0 ? task.fitted : task.measured;
  if (half.size() < n_questions) half.push_back(std::move(question));
}

void shuffle(std::vector<Json>& rows) {
  std::sort(rows.begin(), rows.end(), [](const Json& a, const Json& b) { return hash64(a.dump()) < hash64(b.dump()); });
}

Task medquad(std::vector<Json> rows, size_t n_documents, size_t n_questions) {
  Task task;
  shuffle(rows);
  rows.resize(std::min(rows.size(), n_documents));
  std::map<std::string, std::set<std::string>> answers;
  for (const Json& row : rows) {
    const std::string name = "d" + std::to_string(task.documents.size());
    task.documents.emplace_back(name, row["a"].get<std::string>());
    answers[row["q"].get<std::string>()].insert(name);
  }
  for (const auto& [text, right] : answers) add_question(task, {text, right}, n_questions);
  return task;
}

Task fairytaleqa(std::vector<Json> rows, size_t n_documents, size_t n_questions) {
  Task task;
  shuffle(rows);
  std::vector<Question> questions;
  for (const Json& tale : rows) {
    if (task.documents.size() + tale["sections"].size() > n_documents) break;
    const size_t first = task.documents.size();
    for (const Json& section : tale["sections"]) {
      task.documents.emplace_back("d" + std::to_string(task.documents.size()), section.get<std::string>());
    }
    for (const Json& qa : tale["qa"]) {
      const size_t section = std::strtoul(qa["section"].get<std::string>().c_str(), nullptr, 10);
      if (section == 0 || section > tale["sections"].size()) continue;
      questions.push_back({qa["q"].get<std::string>(), {"d" + std::to_string(first + section - 1)}});
    }
  }
  std::sort(questions.begin(), questions.end(),
            [](const Question& a, const Question& b) { return hash64(a.text, 1) < hash64(b.text, 1); });
  for (Question& question : questions) add_question(task, std::move(question), n_questions);
  return task;
}

// Each question is embedded once, however many weights are tried.
TextEmbedder remembering(TextEmbedder embedder, std::map<std::string, std::vector<float>>& known) {
  const auto embed = embedder.embed;
  embedder.embed = [embed, &known](std::span<const std::string> texts,
                                   auto deadline) -> Result<std::vector<std::vector<float>>> {
    if (texts.size() != 1) return embed(texts, deadline);
    if (const auto it = known.find(texts[0]); it != known.end()) return std::vector<std::vector<float>>{it->second};
    TRY_ASSIGN(auto vectors, embed(texts, deadline));
    known[texts[0]] = vectors[0];
    return Result<std::vector<std::vector<float>>>{std::move(vectors)};
  };
  return embedder;
}

// The mean of the rows of the table that a model's input is made of.
TextEmbedder token_means(const gguf::File& file, const Tokenizer& tokenizer, uint64_t fingerprint) {
  const TensorView& table = *file.find("token_embd.weight");
  const auto d = static_cast<size_t>(table.ne[0]);
  const auto embed = [&table, &tokenizer, d](std::span<const std::string> texts, auto) {
    std::vector<std::vector<float>> vectors;
    std::vector<float> row(d);
    for (const std::string& text : texts) {
      std::vector<float> sum(d);
      for (const int32_t id : tokenizer.encode(text, EncodeMode::plain, false)) {
        dequantize_row(table.type, table.row(static_cast<uint64_t>(id)), row.data(), static_cast<int64_t>(d));
        for (size_t j = 0; j < d; ++j) sum[j] += row[j];
      }
      double squares = 1e-30;
      for (const float x : sum) squares += double{x} * x;
      for (float& x : sum) x = static_cast<float>(x / std::sqrt(squares));
      vectors.push_back(std::move(sum));
    }
    return Result<std::vector<std::vector<float>>>{std::move(vectors)};
  };
  return {hash_mix(fingerprint + 1), static_cast<int>(d), "token embeddings", embed, 1};
}

Result<double> ndcg(const Collections& collections, const Question& question, SearchMode mode, double weight,
                    bool matches) {
  SearchCall call;
  call.query = question.text;
  call.mode = mode;
  call.match = matches;
  call.vector_weight = weight;
  call.k = 50;
  TRY_ASSIGN(const auto hits, collections.search(call));
  std::set<std::string> seen;
  double gain = 0, best = 0;
  for (const Hit& hit : hits) {
    if (!seen.insert(hit.document).second) continue;
    if (seen.size() > kRanked) break;
    if (question.right.count(hit.document) > 0) gain += 1 / std::log2(static_cast<double>(seen.size()) + 1);
  }
  for (size_t i = 0; i < std::min(question.right.size(), kRanked); ++i)
    best += 1 / std::log2(static_cast<double>(i) + 2);
  return gain / best;
}

Result<std::vector<double>> scores_of(const Collections& collections, const std::vector<Question>& questions,
                                      SearchMode mode, double weight, bool matches = false) {
  std::vector<double> scores;
  for (const Question& question : questions) {
    TRY_ASSIGN(const double score, ndcg(collections, question, mode, weight, matches));
    scores.push_back(score);
  }
  return Result<std::vector<double>>{std::move(scores)};
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

void print_row(const std::string& what, const std::vector<double>& scores, double words, const std::string& note) {
  std::vector<double> means;
  for (int r = 0; r < kResamples; ++r) {
    double sum = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      sum += scores[hash_mix(static_cast<uint64_t>(r) * 1'000'003 + i) % scores.size()];
    }
    means.push_back(sum / static_cast<double>(scores.size()));
  }
  std::sort(means.begin(), means.end());
  std::printf("| %s | %.3f | %.3f to %.3f | %+.1f %% | %s |\n", what.c_str(), mean(scores), means[kResamples / 40],
              means[kResamples - kResamples / 40], 100 * (mean(scores) / words - 1), note.c_str());
  std::fflush(stdout);
}

// All questions, read again by the matcher, beside all of them by words.
Status measure_again(const Collections& collections, const Task& task, double weight, const std::string& what) {
  std::vector<double> again, words;
  for (const auto* part : {&task.measured, &task.fitted}) {
    TRY_ASSIGN(const auto read, scores_of(collections, *part, SearchMode::hybrid, weight, true));
    TRY_ASSIGN(const auto found, scores_of(collections, *part, SearchMode::words, 0));
    again.insert(again.end(), read.begin(), read.end());
    words.insert(words.end(), found.begin(), found.end());
  }
  char note[80];
  std::snprintf(note, sizeof note, "all %zu questions, where words have %.3f", words.size(), mean(words));
  print_row("read again: " + what, again, mean(words), note);
  return Ok{};
}

Status measure(Collections& collections, const Task& task, TextEmbedder embedder, double words, bool matches) {
  std::map<std::string, std::vector<float>> known;
  const std::string name = embedder.name;
  const double own_weight = embedder.score_weight.value_or(embedder.weight);
  const std::span<const double> weights =
      embedder.score_weight ? std::span<const double>(kScoreWeights) : std::span<const double>(kWeights);
  collections.use(remembering(std::move(embedder), known));
  for (const auto& [document, text] : task.documents) TRY(collections.add({"", kCollection, document, text, 0, {}}));
  TRY_ASSIGN(const auto alone, scores_of(collections, task.measured, SearchMode::vectors, 1));
  print_row("vectors: " + name, alone, words, "");
  double best = -1, best_weight = 0;
  for (const double weight : weights) {
    TRY_ASSIGN(const auto fitted, scores_of(collections, task.fitted, SearchMode::hybrid, weight));
    if (mean(fitted) <= best) continue;
    best = mean(fitted);
    best_weight = weight;
  }
  TRY_ASSIGN(const auto hybrid, scores_of(collections, task.measured, SearchMode::hybrid, best_weight));
  char note[64];
  std::snprintf(note, sizeof note, "weight %.2f, %.3f where it was fitted", best_weight, best);
  print_row("hybrid: " + name, hybrid, words, note);
  TRY_ASSIGN(auto as_used, scores_of(collections, task.measured, SearchMode::hybrid, own_weight));
  std::snprintf(note, sizeof note, "weight %.2f, as searches use it", own_weight);
  print_row("hybrid: " + name, as_used, words, note);
  // Where the weight was fitted elsewhere, both halves measure it.
  TRY_ASSIGN(const auto others, scores_of(collections, task.fitted, SearchMode::hybrid, own_weight));
  TRY_ASSIGN(const auto others_by_words, scores_of(collections, task.fitted, SearchMode::words, 0));
  as_used.insert(as_used.end(), others.begin(), others.end());
  const double n = static_cast<double>(as_used.size()), n_others = static_cast<double>(others.size());
  const double words_of_all = (words * (n - n_others) + mean(others_by_words) * n_others) / n;
  std::snprintf(note, sizeof note, "all %.0f questions, where words have %.3f", n, words_of_all);
  print_row("hybrid: " + name, as_used, words_of_all, note);
  return matches ? measure_again(collections, task, own_weight, name) : Status{Ok{}};
}

Status run(int argc, char** argv) {
  if (argc < 5)
    return Error{Code::invalid_argument,
                 "expected MODEL medquad|fairytaleqa DATA.jsonl DATABASE [DOCUMENTS [QUESTIONS [THREADS [MATCHER]]]]"};
  const std::string kind = argv[2];
  const size_t n_documents = argc > 5 ? std::strtoul(argv[5], nullptr, 10) : 100'000;
  const size_t n_questions = argc > 6 ? std::strtoul(argv[6], nullptr, 10) : 1000;
  TRY_ASSIGN(std::vector<Json> rows, read_lines(argv[3]));
  const Task task = kind == "medquad" ? medquad(std::move(rows), n_documents, n_questions)
                                      : fairytaleqa(std::move(rows), n_documents, n_questions);
  for (const char* ending : {"", "-wal", "-shm"}) std::filesystem::remove(std::string(argv[4]) + ending);
  TRY_ASSIGN(const auto collections, Collections::open(argv[4]));
  for (const auto& [document, text] : task.documents) TRY(collections->add({"", kCollection, document, text, 0, {}}));
  TRY_ASSIGN(const OwnerUsage usage, collections->usage(""));
  std::printf("%s: %zu documents, %llu chunks, %zu questions measured, %zu others for the weight\n\n", kind.c_str(),
              task.documents.size(), static_cast<unsigned long long>(usage.chunks), task.measured.size(),
              task.fitted.size());
  std::printf("| | nDCG@10 | 95 %% | against words | |\n|---|---|---|---|---|\n");
  TRY_ASSIGN(const auto words, scores_of(*collections, task.measured, SearchMode::words, 0));
  print_row("words (BM25)", words, mean(words), "");
  if (argc > 8) {
    TRY_ASSIGN(Matcher matcher, Matcher::open(argv[8]));
    collections->use(std::make_shared<const Matcher>(std::move(matcher)));
    TRY(measure_again(*collections, task, 0, "words"));
  }
  TRY_ASSIGN(const gguf::File file, gguf::File::open(argv[1]));
  LoadOptions options;
  options.n_threads = argc > 7 ? std::atoi(argv[7]) : 0;
  TRY_ASSIGN(auto model, models::Model::load(argv[1], models::BackendKind::cpu, options));
  engine::EngineConfig config;
  config.cache.ram_bytes = 0;
  TRY_ASSIGN(const auto embedding_model, orchestrator::EmbeddingModel::open(std::move(model), std::move(config)));
  orchestrator::Embedder& embedder = embedding_model->embedder();
  TRY(measure(*collections, task, token_means(file, embedder.tokenizer(), embedder.model_fingerprint()), mean(words),
              false));
  TextEmbedder states = orchestrator::text_embedder(embedder);
  states.name = "states of " + states.name;
  return measure(*collections, task, std::move(states), mean(words), argc > 8);
}

}  // namespace

int main(int argc, char** argv) {
  const Status done = run(argc, argv);
  if (done) return 0;
  std::fprintf(stderr, "quality_bench: %s\n", done.error().message.c_str());
  return 1;
}
