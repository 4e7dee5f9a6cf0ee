// scratch_for_test.h  A folder for the files of a test: of this process alone, and gone when it ends.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace chimere::fixture {

// Empty, whatever the test left there before. `name` tells several of one test apart.
inline std::filesystem::path scratch_folder(const std::string& name = "") {
  struct Root {
    const std::filesystem::path path =
        std::filesystem::path(testing::TempDir()) / ("chimere-test-" + std::to_string(::getpid()));
    ~Root() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Root root;
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  std::string test = std::string(info->test_suite_name()) + "-" + info->name() + "-" + name;
  std::replace(test.begin(), test.end(), '/', '-');
  const std::filesystem::path folder = root.path / test;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace chimere::fixture
