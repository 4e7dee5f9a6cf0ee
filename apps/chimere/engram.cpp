// engram.cpp  chimere engram: making tables of n-grams, teaching them, making them forget, and looking into them.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "common.h"
#include "engram/edit.h"
#include "engram/library.h"
#include "engram/table.h"
#include "engram/table_memory.h"
#include "gguf/gguf.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/tokenizer.h"

namespace chimere::apps {
namespace {

using Json = nlohmann::ordered_json;

struct EngramOptions {
  std::string table;
  std::string model;
  std::string user;
  std::vector<std::string> inputs;  // texts, or the tables of merge
  std::string source;
  float score = 5;
  float threshold = 3.5;
  bool ages = false;
  bool never_ages = false;
  int min_order = engram::kMinOrder, max_order = engram::kMaxOrder;
  uint32_t least = 1;
  std::string query;
  bool json = false;
};

struct Words {
  Tokenizer tokenizer;
  engram::Vocabulary vocabulary;
};

Result<Words> load_words(const EngramOptions& o) {
  TRY_ASSIGN(const std::string path, model_path(o.model));
  TRY_ASSIGN(const gguf::File file, gguf::File::open(path));
  TRY_ASSIGN(Tokenizer tokenizer, Tokenizer::from_metadata(file.metadata()));
  const engram::Vocabulary vocabulary{vocabulary_fingerprint(tokenizer), static_cast<uint32_t>(tokenizer.n_vocab())};
  return Result<Words>{Words{std::move(tokenizer), vocabulary}};
}

// The table itself, or with --user the one of that user in the folder.
std::string table_path(const EngramOptions& o) {
  return o.user.empty() ? o.table : engram::Library::user_file(o.table, o.user).string();
}

// A user's own table is nobody else's to read.
Readers readers_of(const EngramOptions& o) { return o.user.empty() ? Readers::all : Readers::owner; }

// For those who only look: also the name of a table that comes with the program.
std::string readable_path(const EngramOptions& o) {
  std::error_code error;
  const std::string path = table_path(o), folder = shipped_tables();
  if (std::filesystem::exists(path, error) || folder.empty() || !engram::Library::is_name(o.table)) return path;
  const std::filesystem::path shipped = std::filesystem::path(folder) / (o.table + ".engram");
  return std::filesystem::exists(shipped, error) ? shipped.string() : path;
}

engram::Lesson lesson_of(const std::string& name, uint32_t day, float score) {
  engram::Lesson lesson;
  lesson.source.id = name;
  lesson.source.day = day;
  lesson.source.score = score;
  return lesson;
}

// A line of a .jsonl file: {"text": ..., "source": ..., "score": ...}, the last two as the options say when absent.
Status read_json_lines(std::istream& in, const std::string& path, const EngramOptions& o, const Words& words,
                       uint32_t day, std::vector<engram::Lesson>& lessons) {
  std::string line;
  for (size_t number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("text") || !json["text"].is_string() ||
        (json.contains("source") && !json["source"].is_string()) ||
        (json.contains("score") && !json["score"].is_number())) {
      return Error{Code::invalid_argument, path + ":" + std::to_string(number) +
                                               ": expected an object with a string `text`, and if given a string "
                                               "`source` and a number `score`"};
    }
    const std::string name = json.value("source", o.source.empty() ? path : o.source);
    const float score = json.value("score", o.score);
    if (lessons.empty() || lessons.back().source.id != name || lessons.back().source.score != score) {
      lessons.push_back(lesson_of(name, day, score));
    }
    lessons.back().texts.push_back(words.tokenizer.encode(json["text"].get<std::string>(), EncodeMode::plain, false));
  }
  return Ok{};
}

Result<std::vector<engram::Lesson>> read_lessons(const EngramOptions& o, const Words& words, uint32_t day) {
  std::vector<engram::Lesson> lessons;
  for (const std::string& path : o.inputs) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return Error{Code::io, path + ": can not be opened"};
    if (path.ends_with(".jsonl")) {
      TRY(read_json_lines(in, path, o, words, day, lessons));
      continue;
    }
    const std::string text(std::istreambuf_iterator<char>(in), {});
    lessons.push_back(lesson_of(o.source.empty() ? path : o.source, day, o.score));
    lessons.back().texts.push_back(words.tokenizer.encode(text, EncodeMode::plain, false));
  }
  return Result<std::vector<engram::Lesson>>{std::move(lessons)};
}

Status print_stats(const EngramOptions& o, const Words& words) {
  TRY_ASSIGN(const auto table, engram::Table::open(readable_path(o), words.vocabulary, engram::today()));
  const engram::FileHeader& h = table->header();
  Json json = {{"version", table->version()}, {"keys", h.n_keys},         {"continuations", h.n_entries},
               {"bytes", h.file_bytes},       {"min_order", h.min_order}, {"max_order", h.max_order}};
  json["sources"] = Json::array();
  for (const engram::Source& source : table->sources()) {
    Json entry = {{"id", source.id}, {"score", source.score}, {"tokens", source.n_tokens}};
    if (source.day == engram::kNeverAges) {
      entry["age_days"] = nullptr;
    } else {
      entry["age_days"] = engram::today() - std::min(engram::today(), source.day);
    }
    entry["weight"] = engram::weight_at_age(source.day, engram::today());
    json["sources"].push_back(std::move(entry));
  }
  if (o.json) {
    std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    return Ok{};
  }
  std::printf("version %d, %llu n-grams of %u to %u tokens, %llu continuations, %.1f MB\n", table->version(),
              static_cast<unsigned long long>(h.n_keys), h.min_order, h.max_order,
              static_cast<unsigned long long>(h.n_entries), static_cast<double>(h.file_bytes) / 1e6);
  for (const Json& source : json["sources"]) {
    const std::string age =
        source["age_days"].is_null() ? "never ages" : std::to_string(source["age_days"].get<uint32_t>()) + " days old";
    std::printf("  %s: %llu tokens, score %.1f, %s, weight %.2f\n", source["id"].get<std::string>().c_str(),
                static_cast<unsigned long long>(source["tokens"].get<uint64_t>()), source["score"].get<double>(),
                age.c_str(), source["weight"].get<double>());
  }
  return Ok{};
}

Status print_query(const EngramOptions& o, const Words& words) {
  TRY_ASSIGN(const auto table, engram::Table::open(readable_path(o), words.vocabulary, engram::today()));
  const std::vector<int32_t> ids = words.tokenizer.encode(o.query, EncodeMode::plain, false);
  const engram::Table::Context context = engram::Table::context_of(ids);
  Json json = Json::array();
  engram::Hit hit;
  for (int order = table->max_order(); order >= table->min_order(); --order) {
    if (!table->find(context, order, hit)) continue;
    Json next = Json::array();
    for (size_t i = 0; i < hit.next.size() && i < 10; ++i) {
      next.push_back({{"token", hit.next[i].token},
                      {"text", std::string(words.tokenizer.token_text(hit.next[i].token))},
                      {"count", hit.next[i].count}});
    }
    json.push_back({{"order", order}, {"total", hit.total}, {"next", std::move(next)}});
  }
  if (o.json) {
    std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    return Ok{};
  }
  if (json.empty()) std::printf("nothing is known after these %zu tokens\n", ids.size());
  for (const Json& match : json) {
    std::printf("after the last %d tokens, seen %.6g times:", match["order"].get<int>(), match["total"].get<double>());
    for (const Json& next : match["next"]) {
      std::printf("  %s x%.6g", next["text"].dump(-1, ' ', false, Json::error_handler_t::replace).c_str(),
                  next["count"].get<double>());
    }
    std::printf("\n");
  }
  return Ok{};
}

void print_removed(const engram::Removed& removed) {
  std::printf("removed %llu sources and %llu n-grams that only they had taught\n",
              static_cast<unsigned long long>(removed.sources), static_cast<unsigned long long>(removed.keys));
}

Status teach(const EngramOptions& o, const Words& words, bool adds) {
  const bool ages = adds ? !o.never_ages : o.ages;
  TRY_ASSIGN(const auto lessons, read_lessons(o, words, ages ? engram::today() : engram::kNeverAges));
  const engram::TableShape shape{words.vocabulary, o.min_order, o.max_order};
  if (adds) {
    TRY(engram::add_lessons(table_path(o), shape, lessons, o.threshold, readers_of(o)));
  } else {
    TRY(engram::build_table(table_path(o), shape, lessons, o.least, readers_of(o)));
  }
  TRY_ASSIGN(const auto table, engram::Table::open(table_path(o), words.vocabulary, engram::today()));
  std::printf("%s: %llu n-grams, %zu sources\n", table_path(o).c_str(),
              static_cast<unsigned long long>(table->header().n_keys), table->sources().size());
  return Ok{};
}

using Work = std::function<Status(const EngramOptions&, const Words&)>;

CLI::App* add_verb(CLI::App& engram, Outcome& outcome, const std::shared_ptr<EngramOptions>& o, const char* name,
                   const char* description, Work work) {
  CLI::App* verb = engram.add_subcommand(name, description);
  verb->add_option("table", o->table, "the file of the table; with --user, the folder of tables")->required();
  verb->add_option("--model", o->model, "GGUF file with the vocabulary; the model in the box when absent");
  if (std::string(name) != "merge") verb->add_option("--user", o->user, "the table of this user in the folder");
  verb->callback([o, work = std::move(work), &outcome] {
    auto words = load_words(*o);
    if (!words) {
      outcome.code = fail(words.error());
    } else if (Status s = work(*o, *words); !s) {
      outcome.code = fail(s.error());
    }
  });
  return verb;
}

void add_text_options(CLI::App& verb, EngramOptions& o) {
  verb.add_option("--text", o.inputs, "UTF-8 files; of a .jsonl file each line is {\"text\", \"source\", \"score\"}")
      ->required();
  verb.add_option("--source", o.source, "name under which the text can be forgotten; the file's name when absent");
  verb.add_option("--score", o.score, "how good the text is")->capture_default_str();
  verb.add_option("--min-order", o.min_order, "shortest n-gram")->capture_default_str();
  verb.add_option("--max-order", o.max_order, "longest n-gram")->capture_default_str();
}

}  // namespace

void add_engram(CLI::App& app, Outcome& outcome) {
  auto o = std::make_shared<EngramOptions>();
  CLI::App* engram = app.add_subcommand("engram", "Make and change tables of n-grams, the memory of a model");
  engram->require_subcommand(1);
  CLI::App* build = add_verb(*engram, outcome, o, "build", "make a table from text",
                             [](const EngramOptions& e, const Words& w) { return teach(e, w, false); });
  add_text_options(*build, *o);
  build->add_option("--least", o->least, "leave out continuations that were seen less often: a small table")
      ->check(CLI::Range(1u, 1'000'000u))
      ->capture_default_str();
  build->add_flag("--ages", o->ages, "its weight halves every 30 days and is gone after 90; else it stays");
  CLI::App* add = add_verb(*engram, outcome, o, "add", "teach a table more text, if the text is good enough",
                           [](const EngramOptions& e, const Words& w) { return teach(e, w, true); });
  add_text_options(*add, *o);
  add->add_option("--threshold", o->threshold, "text with a lower score is refused")->capture_default_str();
  add->add_flag("--never-ages", o->never_ages, "stays; else its weight halves every 30 days and is gone after 90");
  CLI::App* merge = add_verb(
      *engram, outcome, o, "merge", "make a table of several",
      [](const EngramOptions& e, const Words& w) { return engram::merge_tables(e.table, e.inputs, w.vocabulary); });
  merge->add_option("from", o->inputs, "the tables to merge")->required();
  add_verb(*engram, outcome, o, "decay", "remove what is older than 90 days",
           [](const EngramOptions& e, const Words& w) -> Status {
             TRY_ASSIGN(const auto removed,
                        engram::decay_table(table_path(e), w.vocabulary, engram::today(), readers_of(e)));
             print_removed(removed);
             return Ok{};
           });
  CLI::App* forget = add_verb(*engram, outcome, o, "forget", "remove everything a source taught",
                              [](const EngramOptions& e, const Words& w) -> Status {
                                TRY_ASSIGN(const auto removed,
                                           engram::forget_source(table_path(e), w.vocabulary, e.source, readers_of(e)));
                                print_removed(removed);
                                return Ok{};
                              });
  forget->add_option("--source", o->source, "the name of the source")->required();
  CLI::App* stats = add_verb(*engram, outcome, o, "stats", "what is in a table", print_stats);
  stats->add_flag("--json", o->json, "print one JSON object");
  CLI::App* query = add_verb(*engram, outcome, o, "query", "what a table expects after a text", print_query);
  query->add_option("text", o->query, "the text")->required();
  query->add_flag("--json", o->json, "print one JSON array");
  add_engram_passages(*engram, outcome);
  add_engram_notes(*engram, outcome);
}

}  // namespace chimere::apps
