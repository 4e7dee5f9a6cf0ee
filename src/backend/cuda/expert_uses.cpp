#include "backend/cuda/expert_uses.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>

#include "base/platform/atomic_file.h"

namespace chimere::cuda {
namespace {

struct Header {
  char magic[8];
  uint64_t n_experts;
};
constexpr char kMagic[] = "CHIMUSE1";

}  // namespace

std::string uses_path(const std::string& folder, uint64_t fingerprint) {
  char name[40];
  std::snprintf(name, sizeof name, "%016llx.experts-used", static_cast<unsigned long long>(fingerprint));
  return (std::filesystem::path(folder) / name).string();
}

std::vector<float> read_uses(const std::string& path, size_t n_experts) {
  std::error_code error;
  std::vector<float> uses(n_experts);
  const auto bytes = static_cast<std::streamsize>(n_experts * sizeof(float));
  if (std::filesystem::file_size(path, error) != sizeof(Header) + static_cast<uintmax_t>(bytes) || error) return {};
  std::ifstream in(path, std::ios::binary);
  Header header{};
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  in.read(reinterpret_cast<char*>(uses.data()), bytes);
  if (!in || std::memcmp(header.magic, kMagic, sizeof header.magic) != 0 || header.n_experts != n_experts) return {};
  const bool is_sound = std::all_of(uses.begin(), uses.end(), [](float u) { return std::isfinite(u) && u >= 0; });
  return is_sound ? uses : std::vector<float>();
}

Status write_uses(const std::string& path, const std::vector<float>& uses) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof header.magic);
  header.n_experts = uses.size();
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  TRY(file.write(std::as_bytes(std::span(&header, 1))));
  TRY(file.write(std::as_bytes(std::span(uses))));
  return file.commit();
}

}  // namespace chimere::cuda
