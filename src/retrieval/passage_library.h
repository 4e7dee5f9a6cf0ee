// passage_library.h  Files of passages by name: `NAME.passages` of a folder for all, `users/USER/NAME.passages` for
// one.
//
// A file is opened when it is first asked for and again when it was replaced. Use it from any thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "retrieval/passage_index.h"

namespace chimere::retrieval {

class PassageLibrary {
 public:
  explicit PassageLibrary(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // What this owner may name, sorted: the files for all and the owner's own. Empty owner: nobody's.
  std::vector<std::string> names(const std::string& owner) const;
  // The owner's own file of this name, else the one for all. not_found names what there is.
  Result<std::shared_ptr<const PassageIndex>> open(const std::string& name, const std::string& owner);

  // Where a user's files lie: no name leads out of it, and two users never share one.
  static std::filesystem::path user_folder(const std::filesystem::path& folder, const std::string& user);

 private:
  struct Opened {
    std::shared_ptr<const PassageIndex> index;
    std::filesystem::file_time_type written;
    uintmax_t bytes = 0;
  };
  Result<std::shared_ptr<const PassageIndex>> open_file(const std::filesystem::path& path);

  const std::filesystem::path folder_;
  std::mutex mutex_;
  std::map<std::filesystem::path, Opened> opened_;
};

}  // namespace chimere::retrieval
