#include "engram/edit.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "base/platform/file_lock.h"
#include "base/platform/private_file.h"
#include "engram/text_records.h"

namespace chimere::engram {
namespace {

Result<FileLock> lock_for(const std::string& path) { return FileLock::acquire(path + ".lock"); }

// For those who may make a new table: its folder is made too.
Result<FileLock> lock_new(const std::string& path, Readers readers) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (readers == Readers::owner) TRY(make_private_folders(folder.string()));
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) return Error{Code::io, folder.string() + ": can not be made: " + error.message()};
  return lock_for(path);
}

// What was seen at least so often, by all sources together. A record keeps the sum of all its counts, so that what is
// left out still counts as a doubt.
class FrequentRecords : public RecordStream {
 public:
  FrequentRecords(RecordStream& all, uint32_t least) : all_(all), least_(least) {}
  Result<bool> next(Record& record) override {
    while (true) {
      TRY_ASSIGN(const bool found, all_.next(record));
      if (!found || least_ <= 1) return found;
      std::map<uint32_t, uint64_t> counts;  // by token
      for (const uint64_t word : record.entries) counts[Entry::unpack(word).token] += Entry::unpack(word).count;
      kept_.clear();
      for (const uint64_t word : record.entries) {
        if (counts[Entry::unpack(word).token] >= least_) kept_.push_back(word);
      }
      record.entries = kept_;
      if (!kept_.empty()) return true;
    }
  }

 private:
  RecordStream& all_;
  const uint32_t least_;
  std::vector<uint64_t> kept_;
};

// Tables and texts on their way into one file.
class Merge {
 public:
  // Takes over the sources of a table that `keeps` keeps; one of the same name and age is counted with those there.
  Status add_table(std::shared_ptr<const Table> table, const std::function<bool(const Source&)>& keeps) {
    if (table->version() != kVersion) {
      return Error{Code::unsupported, "tables of version 1 hold no keys and can only be read"};
    }
    MergeInput input;
    for (const Source& source : table->sources()) {
      input.source_map.push_back(keeps(source) ? index_of(source) : MergeInput::kForgotten);
    }
    streams_.push_back(table->records());
    input.stream = streams_.back().get();
    inputs_.push_back(std::move(input));
    tables_.push_back(std::move(table));
    return Ok{};
  }

  void add_lessons(const TableShape& shape, const std::vector<Lesson>& lessons) {
    auto records = std::make_unique<TextRecords>(shape.min_order, shape.max_order);
    MergeInput input;
    for (size_t i = 0; i < lessons.size(); ++i) {
      Source source = lessons[i].source;
      source.n_tokens = 0;
      for (const std::vector<int32_t>& text : lessons[i].texts) {
        records->add(text, static_cast<uint32_t>(i));
        source.n_tokens += text.size();
      }
      input.source_map.push_back(index_of(source));
    }
    input.stream = records.get();
    streams_.push_back(std::move(records));
    inputs_.push_back(std::move(input));
  }

  Status write(const std::string& path, const TableShape& shape, Readers readers, uint32_t least = 1) {
    MergedRecords merged(std::move(inputs_));
    FrequentRecords frequent(merged, least);
    return write_table(path, shape, frequent, sources_, readers);
  }

 private:
  uint32_t index_of(const Source& source) {
    const auto [it, is_new] = indices_.try_emplace({source.id, source.day}, static_cast<uint32_t>(sources_.size()));
    if (is_new) {
      sources_.push_back(source);
    } else {
      sources_[it->second].n_tokens += source.n_tokens;
      sources_[it->second].score = std::min(sources_[it->second].score, source.score);
    }
    return it->second;
  }

  std::vector<std::shared_ptr<const Table>> tables_;
  std::vector<std::unique_ptr<RecordStream>> streams_;
  std::vector<MergeInput> inputs_;
  std::vector<Source> sources_;
  std::map<std::pair<std::string, uint32_t>, uint32_t> indices_;  // by name and day
};

TableShape shape_of(const Table& table) { return {table.vocabulary(), table.min_order(), table.max_order()}; }

Status check_lessons(const TableShape& shape, const std::vector<Lesson>& lessons) {
  const auto known = [&](int32_t id) { return id >= 0 && static_cast<uint32_t>(id) < shape.vocabulary.n_vocab; };
  if (shape.min_order < kMinOrder || shape.min_order > shape.max_order || shape.max_order > kMaxOrder) {
    return Error{Code::invalid_argument, "orders: expected a range within " + std::to_string(kMinOrder) + " to " +
                                             std::to_string(kMaxOrder) + ", found " + std::to_string(shape.min_order) +
                                             " to " + std::to_string(shape.max_order)};
  }
  for (const Lesson& lesson : lessons) {
    if (lesson.source.id.empty() || lesson.source.id.size() > 1000) {
      return Error{Code::invalid_argument, "source: expected a name of 1 to 1000 bytes, found one of " +
                                               std::to_string(lesson.source.id.size())};
    }
    for (const std::vector<int32_t>& text : lesson.texts) {
      if (std::all_of(text.begin(), text.end(), known)) continue;
      return Error{Code::invalid_argument, "source '" + lesson.source.id + "': expected token ids below " +
                                               std::to_string(shape.vocabulary.n_vocab) + ", found another"};
    }
  }
  return Ok{};
}

// Rewrites a table without the sources that `keeps` does not keep.
Result<Removed> remove_sources(const std::string& path, const Vocabulary& vocabulary,
                               const std::function<bool(const Source&)>& keeps, Readers readers) {
  TRY_ASSIGN(const std::shared_ptr<const Table> table, Table::open(path, vocabulary, 0));
  const auto& sources = table->sources();
  Removed removed;
  removed.sources = static_cast<uint64_t>(std::count_if(sources.begin(), sources.end(), std::not_fn(keeps)));
  if (removed.sources == 0) return removed;
  Merge merge;
  TRY(merge.add_table(table, keeps));
  TRY(merge.write(path, shape_of(*table), readers));
  TRY_ASSIGN(const std::shared_ptr<const Table> now, Table::open(path, vocabulary, 0));
  removed.keys = table->header().n_keys - now->header().n_keys;
  return removed;
}

bool keeps_all(const Source&) { return true; }

}  // namespace

Status build_table(const std::string& path, const TableShape& shape, const std::vector<Lesson>& lessons, uint32_t least,
                   Readers readers) {
  TRY(check_lessons(shape, lessons));
  TRY_ASSIGN(const FileLock lock, lock_new(path, readers));
  Merge merge;
  merge.add_lessons(shape, lessons);
  return merge.write(path, shape, readers, least);
}

Result<std::shared_ptr<const Table>> table_of_text(const TableShape& shape, std::span<const int32_t> tokens) {
  TextRecords records(shape.min_order, shape.max_order);
  records.add(tokens, 0);
  MergedRecords merged(std::vector<MergeInput>{{&records, {0}}});
  TRY_ASSIGN(std::vector<uint64_t> image,
             table_image(shape, merged, {{"text", kNeverAges, 5, static_cast<uint64_t>(tokens.size())}}));
  return Table::from_image(std::move(image), "text", shape.vocabulary, 0);
}

Status add_lessons(const std::string& path, const TableShape& shape, const std::vector<Lesson>& lessons,
                   float threshold, Readers readers) {
  TRY(check_lessons(shape, lessons));
  for (const Lesson& lesson : lessons) {
    if (lesson.source.score >= threshold) continue;
    return Error{Code::invalid_argument, "source '" + lesson.source.id + "': its score of " +
                                             std::to_string(lesson.source.score) + " is below the threshold of " +
                                             std::to_string(threshold) + "; nothing was learned"};
  }
  TRY_ASSIGN(const FileLock lock, lock_new(path, readers));
  Merge merge;
  if (std::filesystem::exists(path)) {
    TRY_ASSIGN(const std::shared_ptr<const Table> table, Table::open(path, shape.vocabulary, 0));
    if (table->min_order() != shape.min_order || table->max_order() != shape.max_order) {
      return Error{Code::invalid_argument, path + ": has orders " + std::to_string(table->min_order()) + " to " +
                                               std::to_string(table->max_order()) + ", expected " +
                                               std::to_string(shape.min_order) + " to " +
                                               std::to_string(shape.max_order)};
    }
    TRY(merge.add_table(table, keeps_all));
  }
  merge.add_lessons(shape, lessons);
  return merge.write(path, shape, readers);
}

Status merge_tables(const std::string& path, const std::vector<std::string>& inputs, const Vocabulary& vocabulary) {
  if (inputs.empty()) return Error{Code::invalid_argument, "merge: expected at least one table"};
  TRY_ASSIGN(const FileLock lock, lock_new(path, Readers::all));
  Merge merge;
  TableShape shape{vocabulary, kMaxOrder, kMinOrder};
  for (const std::string& input : inputs) {
    TRY_ASSIGN(const std::shared_ptr<const Table> table, Table::open(input, vocabulary, 0));
    shape.min_order = std::min(shape.min_order, table->min_order());
    shape.max_order = std::max(shape.max_order, table->max_order());
    TRY(merge.add_table(table, keeps_all));
  }
  return merge.write(path, shape, Readers::all);
}

Result<Removed> decay_table(const std::string& path, const Vocabulary& vocabulary, uint32_t today, Readers readers) {
  TRY_ASSIGN(const FileLock lock, lock_for(path));
  return remove_sources(
      path, vocabulary, [&](const Source& source) { return weight_at_age(source.day, today) > 0; }, readers);
}

Result<Removed> forget_source(const std::string& path, const Vocabulary& vocabulary, const std::string& id,
                              Readers readers) {
  TRY_ASSIGN(const FileLock lock, lock_for(path));
  TRY_ASSIGN(const Removed removed,
             remove_sources(
                 path, vocabulary, [&](const Source& source) { return source.id != id; }, readers));
  if (removed.sources == 0) return Error{Code::not_found, path + ": no source is called '" + id + "'"};
  return removed;
}

}  // namespace chimere::engram
