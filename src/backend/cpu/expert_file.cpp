#include "backend/cpu/expert_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "backend/cpu/workspace.h"
#include "base/hash.h"
#include "base/platform/resumable_file.h"

namespace chimere::cpu {
namespace {

constexpr char kMagic[8] = {'C', 'H', 'I', 'M', 'E', 'X', 'P', '1'};
constexpr uint64_t kPartAlign = 64;

uint64_t whole(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

struct ExpertFileHeader {
  char magic[8];
  uint64_t identity, expert_bytes, n_experts, hash;
};

// Of the panels: which weights, and packed how.
uint64_t identity_of(const Program& program, const ExpertLayout& layout, uint64_t fingerprint) {
  uint64_t h = hash_mix(hash64("packed experts 1") ^ fingerprint);
  for (const ExpertLayout::Part& part : layout.parts) {
    const TensorView& tensor = program.matrices[part.id];
    h = hash64(tensor.name, h);
    h = hash64(std::as_bytes(std::span(tensor.ne)), hash_mix(h ^ static_cast<uint64_t>(tensor.type)));
    h = hash_mix(h ^ static_cast<uint64_t>(part.matrix.kind()) ^ part.offset << 8);
  }
  return h;
}

ExpertFileHeader header_of(const ExpertLayout& layout, uint64_t identity) {
  ExpertFileHeader header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.identity = identity;
  header.expert_bytes = layout.bytes;
  header.n_experts = static_cast<uint64_t>(layout.n_experts);
  header.hash = hash64(std::as_bytes(std::span(&header, 1)).first(offsetof(ExpertFileHeader, hash)));
  return header;
}

struct PageDelete {
  void operator()(std::byte* page) const { ::operator delete[](page, std::align_val_t{DirectFile::kPage}); }
};
using Pages = std::unique_ptr<std::byte[], PageDelete>;

Pages new_pages(uint64_t bytes) {
  auto* pages = static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{DirectFile::kPage}));
  std::memset(pages, 0, bytes);
  return Pages(pages);
}

// Not there, cut short, or of something else: no reason to fail, it is made again.
bool is_whole(const DirectFile& file, const ExpertLayout& layout, const ExpertFileHeader& expected) {
  if (file.size_bytes() != layout.file_bytes()) return false;
  const Pages page = new_pages(DirectFile::kPage);
  if (!file.read(0, {page.get(), DirectFile::kPage})) return false;
  return std::memcmp(page.get(), &expected, sizeof(expected)) == 0;
}

TensorView expert_of(const TensorView& stack, int expert) {
  TensorView one = stack;
  one.ne[2] = one.ne[3] = 1;
  one.data = stack.row(static_cast<uint64_t>(expert) * stack.ne[1]);
  return one;
}

Status write_experts(const Program& program, const ExpertLayout& layout, const ExpertFileHeader& header,
                     ResumableFile& file, const ParallelFor& parallel, const std::function<void()>& packed) {
  TRY(file.cut(0));
  TRY(file.check_room(layout.file_bytes()));
  const Pages first = new_pages(DirectFile::kPage);
  std::memcpy(first.get(), &header, sizeof(header));
  TRY(file.write({first.get(), DirectFile::kPage}));
  const Pages expert = new_pages(layout.bytes);
  for (int e = 0; e < layout.n_experts; ++e) {
    for (const ExpertLayout::Part& part : layout.parts) {
      TRY_ASSIGN(const PackedMatrix panels, pack_matrix(expert_of(program.matrices[part.id], e), parallel));
      std::memcpy(expert.get() + part.offset, panels.panel(0, 0), panels.expert_bytes());
    }
    TRY(file.write({expert.get(), layout.bytes}));
    if (packed) packed();
  }
  return file.commit();
}

std::string hex(uint64_t n) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(n));
  return text;
}

}  // namespace

Result<ExpertLayout> ExpertLayout::create(const Program& program, const op::MoeFfn& mixture) {
  ExpertLayout layout;
  layout.n_experts = mixture.n_experts;
  for (const MatrixId id : {mixture.gate, mixture.up, mixture.down}) {
    if (id == kNone) continue;
    TRY_ASSIGN(PackedMatrix matrix, layout_of_matrix(program.matrices[id]));
    const uint64_t offset = layout.bytes;
    layout.bytes += whole(matrix.expert_bytes(), kPartAlign);
    layout.parts.push_back({id, std::move(matrix), offset});
  }
  layout.bytes = whole(layout.bytes, DirectFile::kPage);
  return Result<ExpertLayout>{std::move(layout)};
}

Result<DirectFile> open_expert_file(const Program& program, const ExpertLayout& layout,
                                    const ExpertFileOptions& options, const ParallelFor& parallel,
                                    const std::function<void()>& packed) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error) {
    return Error{Code::io, options.folder + ": cannot make this folder for packed experts: " + error.message()};
  }
  const uint64_t identity = identity_of(program, layout, options.fingerprint);
  const ExpertFileHeader header = header_of(layout, identity);
  const std::string path = (fs::path(options.folder) / (hex(identity) + ".experts")).string();
  if (options.fingerprint != 0) {
    if (auto file = DirectFile::open(path); file && is_whole(*file, layout, header)) {
      for (int e = 0; packed && e < layout.n_experts; ++e) packed();
      return file;
    }
  }
  // Two that start at once: the second waits for nobody, and says so.
  TRY_ASSIGN(ResumableFile file, ResumableFile::open(path, identity));
  TRY(write_experts(program, layout, header, file, parallel, packed));
  TRY_ASSIGN(DirectFile made, DirectFile::open(path));
  if (options.fingerprint == 0) fs::remove(path, error);
  return Result<DirectFile>{std::move(made)};
}

}  // namespace chimere::cpu
