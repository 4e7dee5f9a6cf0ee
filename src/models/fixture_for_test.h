// fixture_for_test.h  Tiny models with reference outputs: where they are, and how tests read and run them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cache/sequence.h"
#include "models/model.h"

namespace chimere::fixture {

namespace fs = std::filesystem;

struct Array {
  std::vector<int64_t> shape;
  std::vector<char> bytes;
  std::span<const float> floats() const { return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4}; }
  std::span<const int32_t> ints() const { return {reinterpret_cast<const int32_t*>(bytes.data()), bytes.size() / 4}; }
};

inline std::map<std::string, Array> read_arrays(const fs::path& folder) {
  std::map<std::string, Array> arrays;
  std::ifstream list(folder / "arrays.txt");
  for (std::string line; std::getline(list, line);) {
    std::istringstream in(line);
    std::string name, dtype, file;
    int n_dims = 0;
    Array a;
    in >> name >> dtype >> n_dims;
    a.shape.resize(n_dims);
    for (int64_t& d : a.shape) in >> d;
    in >> file;
    std::ifstream data(folder / file, std::ios::binary);
    a.bytes.assign(std::istreambuf_iterator<char>(data), {});
    arrays[name] = std::move(a);
  }
  return arrays;
}

inline fs::path kept_root() { return fs::path(CHIMERE_TESTS_DIR) / "golden" / "models"; }

// A model that is in the repository.
inline fs::path kept(const std::string& name) { return kept_root() / name; }

// The models below `root` that `wanted` takes, in order.
template <class Wanted>
std::vector<fs::path> models_in(const fs::path& root, Wanted wanted) {
  std::vector<fs::path> found;
  if (!fs::exists(root)) return found;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "model.gguf") && wanted(entry.path())) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

template <class Wanted>
std::vector<fs::path> models_where(Wanted wanted) {
  std::vector<fs::path> found = models_in(kept_root(), wanted);
  if (const char* shared = std::getenv("CHIMERE_SHARED")) {
    const std::vector<fs::path> more = models_in(fs::path(shared) / "fixtures", wanted);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

// Folders whose name starts with `prefix`, in the repository and in the larger set of $CHIMERE_SHARED.
inline std::vector<fs::path> folders(const std::string& prefix) {
  return models_where([&](const fs::path& folder) { return folder.filename().string().rfind(prefix, 0) == 0; });
}

// Encoders have no logits; everything else that is put into a folder of fixtures is tested.
inline bool gives_logits(const fs::path& folder) { return fs::exists(folder / "logits_48.bin"); }

inline std::unique_ptr<models::Model> load(const fs::path& folder, models::BackendKind backend, bool exact,
                                           KvFormat kv = {DType::F32, DType::F32, false}, int n_threads = 2) {
  LoadOptions options;
  options.exact = exact;
  options.kv = kv;
  options.n_threads = n_threads;
  options.max_rows = 160;
  auto model = models::Model::load((folder / "model.gguf").string(), backend, options);
  EXPECT_TRUE(model) << model.error().message;
  return model ? std::move(*model) : nullptr;
}

// As little RAM for weights as a mixture of experts runs in on the CPU, in steps of a twentieth of what it takes: hardly
// any expert stays, and those in `folder` are read all the time.
inline uint64_t least_ram_bytes(const fs::path& model, const fs::path& folder) {
  LoadOptions options;
  const auto load = [&] { return models::Model::load(model.string(), models::BackendKind::cpu, options); };
  const auto whole = load();
  EXPECT_TRUE(whole) << whole.error().message;
  if (!whole) return 0;
  options.experts_folder = folder.string();
  for (uint64_t part = 1; part < 20; ++part) {
    options.ram_bytes = (*whole)->executable().weight_bytes() * part / 20;
    if (load()) return options.ram_bytes;
  }
  ADD_FAILURE() << "no budget makes it read experts from disk";
  return 0;
}

// A near tie: the lead of the winner is below twice the largest logit difference seen. The one definition for every
// test that compares greedy choices.
inline bool near_tie(std::span<const float> row, float difference) {
  float first = -INFINITY, second = -INFINITY;
  for (float l : row) {
    if (l > first) {
      second = first;
      first = l;
    } else {
      second = std::max(second, l);
    }
  }
  return first - second < 2 * difference;
}

}  // namespace chimere::fixture
