// expert_store_test.cpp  Experts on disk give the bits of experts in RAM, whatever was read when, and a disk that fails
// is told and forgotten.
#include "backend/cpu/expert_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "backend/cpu/expert_bank.h"
#include "base/scratch_for_test.h"
#include "tensor/random_blocks.h"

// A namespace of its own: other tests of the folder name their worlds alike.
namespace chimere::cpu::stored {
namespace {

constexpr int kWidth = 64, kHidden = 32, kExperts = 48, kUsed = 4, kLayers = 6, kMaxRows = 64;

// Layers of experts of two sizes.
class Layers {
 public:
  Layers() {
    for (int i = 0; i < kLayers; ++i) {
      const DType type = i % 2 == 0 ? DType::Q8_0 : DType::Q4_0;
      op::MoeFfn op{};
      op.x = 0;
      op.norm = op.router = kNone;
      op.n_experts = kExperts;
      op.n_used = kUsed;
      op.gate = add("gate", i, type, kWidth, kHidden);
      op.up = add("up", i, type, kWidth, kHidden);
      op.down = add("down", i, type, kHidden, kWidth);
      program_.ops.push_back(op);
    }
    program_.buffers.push_back({"x", kWidth});
    program_.d_model = kWidth;
    for (size_t i = 0; i < bytes_.size(); ++i) {
      program_.matrices[i].data = bytes_[i].data();
      program_.matrices[i].name = names_[i];
    }
  }

  const Program& program() const { return program_; }
  std::vector<const op::MoeFfn*> mixtures() const {
    std::vector<const op::MoeFfn*> mixtures;
    for (const Op& op : program_.ops) mixtures.push_back(&std::get<op::MoeFfn>(op));
    return mixtures;
  }
  uint64_t packed_bytes() const {
    uint64_t bytes = 0;
    for (const TensorView& m : program_.matrices) bytes += (*PackedMatrix::layout_of(m)).size_bytes();
    return bytes;
  }
  std::vector<MatrixId> ids() const {
    std::vector<MatrixId> ids(program_.matrices.size());
    std::iota(ids.begin(), ids.end(), 0);
    return ids;
  }

 private:
  MatrixId add(const char* name, int layer, DType type, int64_t in, int64_t out) {
    const int64_t blocks = in / info(type).block_elems * out * kExperts;
    bytes_.emplace_back(static_cast<size_t>(blocks * info(type).block_bytes));
    random_blocks(type, bytes_.back().data(), blocks, bytes_.size(), 0.2f);
    names_.push_back("blk." + std::to_string(layer) + "." + name);
    program_.matrices.push_back(
        {"", type, {static_cast<uint64_t>(in), static_cast<uint64_t>(out), kExperts, 1}, nullptr});
    return static_cast<MatrixId>(program_.matrices.size() - 1);
  }

  Program program_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<std::string> names_;
};

LoadOptions load_options(const std::filesystem::path& folder, uint64_t ram_bytes) {
  LoadOptions options;
  options.n_threads = 3;
  options.ram_bytes = ram_bytes;
  options.experts_folder = folder.string();
  options.fingerprint = 7;
  return options;
}

std::unique_ptr<ExpertBank> bank(const Layers& layers, const LoadOptions& options) {
  auto made = ExpertBank::create(layers.program(), layers.mixtures(), kMaxRows, options);
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : nullptr;
}

struct Rows {
  std::vector<float> x, weights, out;
  std::vector<int32_t> ids;
};

Rows random_rows(int n_rows, std::mt19937& rng) {
  Rows rows;
  std::normal_distribution<float> normal;
  for (int i = 0; i < n_rows * kWidth; ++i) rows.x.push_back(normal(rng));
  for (int t = 0; t < n_rows; ++t) {
    std::vector<int32_t> all(kExperts);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), rng);
    rows.ids.insert(rows.ids.end(), all.begin(), all.begin() + kUsed);
    for (int k = 0; k < kUsed; ++k) rows.weights.push_back(0.1f * static_cast<float>(k + 1));
  }
  rows.out.assign(rows.x.size(), -1.0f);
  return rows;
}

std::vector<float> run(ExpertBank& bank, int layer, int n_rows, Rows rows) {
  bank.run(layer, n_rows, rows.x.data(), rows.ids.data(), rows.weights.data(), rows.out.data());
  return rows.out;
}

TEST(ExpertStore, GivesTheBitsOfExpertsInRam) {
  const Layers layers;
  const auto folder = fixture::scratch_folder();
  const auto in_ram = bank(layers, load_options(folder, 0));
  const uint64_t budget = layers.packed_bytes() * 7 / 10;
  const auto on_disk = bank(layers, load_options(folder, budget));
  ASSERT_TRUE(in_ram && on_disk);
  EXPECT_FALSE(in_ram->traffic());
  std::mt19937 rng(5);
  for (int turn = 0; turn < 60; ++turn) {
    const int n_rows = turn % 9 == 8 ? kMaxRows : 1 + turn % 3;
    const Rows rows = random_rows(n_rows, rng);
    for (int layer = 0; layer < kLayers; ++layer) {
      ASSERT_EQ(run(*in_ram, layer, n_rows, rows), run(*on_disk, layer, n_rows, rows)) << turn << " " << layer;
      ASSERT_TRUE(on_disk->failure());
    }
  }
  const auto traffic = on_disk->traffic();
  ASSERT_TRUE(traffic);
  EXPECT_EQ(traffic->n_experts, static_cast<uint64_t>(kLayers * kExperts));
  EXPECT_LT(traffic->n_slots, traffic->n_experts);
  EXPECT_LE(traffic->ram_bytes, budget);
  EXPECT_LE(on_disk->weight_bytes(), budget);
  EXPECT_GT(traffic->hits, 0u);
  EXPECT_GT(traffic->misses, traffic->n_slots) << "experts gave way to others";
}

// One of the four experts of a row is one of five, the others are any of the rest: the five stay.
TEST(ExpertStore, KeepsWhatIsUsedMost) {
  const Layers layers;
  const auto on_disk = bank(layers, load_options(fixture::scratch_folder(), layers.packed_bytes() * 7 / 10));
  ASSERT_TRUE(on_disk);
  std::mt19937 rng(9);
  ExpertTraffic before{};
  for (int turn = 0; turn < 300; ++turn) {
    if (turn == 100) before = *on_disk->traffic();
    Rows rows = random_rows(1, rng);
    const auto one_of = [&](int32_t first, int32_t n) { return first + static_cast<int32_t>(rng() % n); };
    for (int layer = 0; layer < kLayers; ++layer) {
      rows.ids = {one_of(0, 5), one_of(5, 14), one_of(19, 14), one_of(33, 15)};
      run(*on_disk, layer, 1, rows);
    }
  }
  const ExpertTraffic after = *on_disk->traffic();
  const auto hits = static_cast<double>(after.hits - before.hits);
  const auto misses = static_cast<double>(after.misses - before.misses);
  // By chance it is the share of experts that RAM has room for; with the five always there, 0.16 of the rest more.
  const double room = static_cast<double>(after.n_slots) / static_cast<double>(after.n_experts);
  EXPECT_GT(hits / (hits + misses), room + 0.08 * (1 - room));
}

TEST(ExpertStore, FilesAreMadeOnceAndAgainWhenTheyAreNotWhole) {
  const Layers layers;
  const auto folder = fixture::scratch_folder();
  const LoadOptions options = load_options(folder, layers.packed_bytes() * 7 / 10);
  ASSERT_TRUE(bank(layers, options));
  namespace fs = std::filesystem;
  std::map<fs::path, fs::file_time_type> made;
  for (const auto& entry : fs::directory_iterator(folder)) made[entry.path()] = entry.last_write_time();
  EXPECT_EQ(made.size(), static_cast<size_t>(kLayers)) << "a file a layer, and nothing beside them";
  // One is cut short, one is another's, one has gone.
  auto file = made.begin();
  fs::resize_file(file->first, fs::file_size(file->first) - 4096);
  const fs::path cut = file->first;
  const fs::path changed = (++file)->first;
  {
    std::fstream bytes(changed, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(8);
    bytes.put('x');
  }
  const fs::path gone = (++file)->first;
  fs::remove(gone);
  const auto in_ram = bank(layers, load_options(folder, 0));
  const auto again = bank(layers, options);
  ASSERT_TRUE(in_ram && again);
  for (const auto& [path, time] : made) {
    const bool is_same = path != cut && path != changed && path != gone;
    EXPECT_EQ(fs::last_write_time(path) == time, is_same) << path;
  }
  std::mt19937 rng(1);
  const Rows rows = random_rows(8, rng);
  for (int layer = 0; layer < kLayers; ++layer) EXPECT_EQ(run(*in_ram, layer, 8, rows), run(*again, layer, 8, rows));
}

TEST(ExpertStore, LeavesNoFilesOfWeightsWithoutAName) {
  const Layers layers;
  const auto folder = fixture::scratch_folder();
  LoadOptions options = load_options(folder, layers.packed_bytes() * 7 / 10);
  options.fingerprint = 0;
  {
    const auto on_disk = bank(layers, options);
    ASSERT_TRUE(on_disk);
#ifndef _WIN32  // where a file may keep its name until it is closed
    EXPECT_TRUE(std::filesystem::is_empty(folder));
#endif
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(ExpertStore, SaysWhatIsNeededWhenThereIsTooLittleRam) {
  const Layers layers;
  auto made =
      ExpertBank::create(layers.program(), layers.mixtures(), kMaxRows, load_options(fixture::scratch_folder(), 4096));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::exhausted);
  EXPECT_NE(made.error().message.find("with the experts on disk"), std::string::npos) << made.error().message;
}

TEST(ExpertStore, SaysWhichFolderCannotBeMade) {
  const Layers layers;
  const auto folder = fixture::scratch_folder();
  std::ofstream(folder / "file") << "not a folder";
  auto made = ExpertBank::create(layers.program(), layers.mixtures(), kMaxRows,
                                 load_options(folder / "file", layers.packed_bytes() * 7 / 10));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::io);
  EXPECT_NE(made.error().message.find((folder / "file").string()), std::string::npos) << made.error().message;
}

class FailingDisk : public testing::Test {
 protected:
  void SetUp() override {
    const LoadOptions options = load_options(fixture::scratch_folder(), layers_.packed_bytes() * 7 / 10);
    const auto slots = store_ram_bytes(layers_.program(), layers_.mixtures(), layers_.ids(), options.ram_bytes);
    ASSERT_TRUE(slots);
    auto made = ExpertStore::create(layers_.program(), layers_.mixtures(), *slots, {}, options,
                                    [this](int mixture, uint64_t offset, std::span<std::byte> to) -> Status {
                                      is_slow_.wait(true);
                                      if (is_broken_) return Error{Code::io, "the disk is gone"};
                                      std::fill(to.begin(), to.end(), static_cast<std::byte>(mixture + offset / 4096));
                                      return Ok{};
                                    });
    ASSERT_TRUE(made) << made.error().message;
    store_ = std::move(*made);
  }

  // What the first byte of the expert's up-projection is, after a use of it.
  uint8_t used(int mixture, int expert) {
    int32_t experts[] = {expert};
    store_->begin(mixture, experts);
    store_->wait(mixture, expert);
    const auto matrix = store_->matrix(layers_.mixtures()[mixture]->up);
    const uint8_t value = matrix->panel(expert, 0)[0];
    store_->end(mixture);
    return value;
  }

  const Layers layers_;
  std::atomic<bool> is_broken_{false}, is_slow_{false};
  std::unique_ptr<ExpertStore> store_;
};

TEST_F(FailingDisk, FailsTheUseAndIsReadAgainLater) {
  const uint8_t before = used(0, 3);
  EXPECT_TRUE(store_->failure());
  is_broken_ = true;
  EXPECT_EQ(used(0, 3), before) << "is in RAM";
  EXPECT_TRUE(store_->failure());
  used(0, 4);
  const Status failure = store_->failure();
  ASSERT_FALSE(failure);
  EXPECT_EQ(const_cast<Status&>(failure).error().message, "the disk is gone");
  EXPECT_TRUE(store_->failure()) << "is told once";
  is_broken_ = false;
  EXPECT_NE(used(0, 4), 0) << "what the failed read left is not taken for the expert";
  EXPECT_TRUE(store_->failure());
}

TEST_F(FailingDisk, GuessesThatFailHurtNobody) {
  is_broken_ = true;
  const int32_t experts[] = {1, 2, 3};
  store_->expect(1, experts);
  is_broken_ = false;
  const uint8_t other = used(2, 1);
  EXPECT_TRUE(store_->failure());
  EXPECT_NE(other, 0);
}

TEST_F(FailingDisk, ASlowOneLeavesSlotsToThoseInUse) {
  std::vector<int32_t> all(kExperts);
  std::iota(all.begin(), all.end(), 0);
  is_slow_ = true;
  for (int layer = 0; layer < kLayers; ++layer) store_->expect(layer, all);
  const uint64_t n_guessed = store_->traffic().read_ahead;
  EXPECT_GT(n_guessed, 0u);
  EXPECT_LT(n_guessed, store_->traffic().n_slots);
  // As a prompt does: everything of a layer at once, while nothing of what was guessed has come.
  std::vector<int32_t> used = all;
  store_->begin(0, used);
  store_->expect(2, all);
  is_slow_ = false;
  is_slow_.notify_all();
  for (const int32_t e : used) store_->wait(0, e);
  store_->end(0);
  EXPECT_TRUE(store_->failure());
}

}  // namespace
}  // namespace chimere::cpu::stored
