// unplugged_for_test.h  The files of a folder lose their bytes and get them back, for who has them open, too: a disk that
// fails and recovers.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace chimere::fixture {

class Unplugged {
 public:
  explicit Unplugged(const std::filesystem::path& folder) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      std::ostringstream bytes;
      bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      bytes_[entry.path()] = std::move(bytes).str();
      std::filesystem::resize_file(entry.path(), 0);
    }
    EXPECT_FALSE(bytes_.empty()) << folder;
  }
  ~Unplugged() {
    for (const auto& [path, bytes] : bytes_) {
      std::ofstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
  }
  Unplugged(const Unplugged&) = delete;

 private:
  std::map<std::filesystem::path, std::string> bytes_;
};

}  // namespace chimere::fixture
