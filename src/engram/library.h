// library.h  A folder of tables: `NAME.engram` (or `NAME.engr`, version 1), and one a user in its folder `users/`;
// behind it those that come with the program, for models with their vocabulary.
//
// Tables are opened when they are first asked for and again when their file was replaced or the day changed; a user's
// table is found only through that user. Use it from any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engram/edit.h"
#include "engram/ngram_source.h"
#include "engram/table.h"

namespace chimere::engram {

class Library {
 public:
  // Without a `folder` there are only the shipped tables, and nobody's own.
  Library(std::filesystem::path folder, Vocabulary vocabulary, std::filesystem::path shipped = {});

  bool has_folder() const { return !folder_.empty(); }

  // Opens every table once, so that what is wrong with one is said at the start; the others can be used.
  std::vector<Error> check();
  // Names of the tables for all, sorted. Shipped ones of another vocabulary are not among them.
  std::vector<std::string> names() const;
  // not_found names what there is; a damaged or foreign table is refused as Table::open says.
  Result<std::shared_ptr<const Table>> table(const std::string& name);
  // Null when this user has none.
  Result<std::shared_ptr<const Table>> table_of_user(const std::string& user);

  // Who knows of tables that were learned from a user's answers, and lie elsewhere; null: there are none for this user.
  // Before anybody asks.
  using Learned = std::function<std::shared_ptr<const NgramSource>(const std::string& user)>;
  void use_learned(Learned learned) { learned_ = std::move(learned); }
  std::shared_ptr<const NgramSource> learned_of_user(const std::string& user) const {
    return learned_ ? learned_(user) : nullptr;
  }

  // Errors as forget_source has them; not_found also when this user has no table.
  Result<Removed> forget_of_user(const std::string& user, const std::string& source);
  // Takes the whole table away.
  Result<Removed> remove_of_user(const std::string& user);

  // Where a user's table lies: any name gives one plain file name, and two names never the same.
  static std::filesystem::path user_file(const std::filesystem::path& folder, const std::string& user);
  // Whether somebody may be called that: 1 to 64 bytes. check_owner says what is wrong.
  static bool is_owner(const std::string& user);
  static Status check_owner(const std::string& user);
  // Letters, digits, '-', '_' and '.', not at the start: no path.
  static bool is_name(const std::string& name);

 private:
  struct Opened {
    std::shared_ptr<const Table> table;
    std::filesystem::file_time_type written;
    uintmax_t bytes = 0;
    uint32_t day = 0;
  };
  // Where a table of this name is; empty when there is none.
  std::filesystem::path file_of(const std::string& name) const;
  Result<std::shared_ptr<const Table>> open(const std::filesystem::path& path);
  // A file may change twice within a tick of the file system's clock: what we changed is not looked up by its time.
  void reopen_later(const std::filesystem::path& path);

  Learned learned_;
  const std::filesystem::path folder_;
  const Vocabulary vocabulary_;
  std::map<std::string, std::filesystem::path> shipped_;  // by name; never changes
  std::mutex mutex_;
  std::map<std::filesystem::path, Opened> opened_;
};

}  // namespace chimere::engram
