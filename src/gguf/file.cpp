// Opening a file or a split set: mapping, the rules that tie shards together, lookup by name.
#include <cstdio>
#include <map>

#include "base/platform/mapped_file.h"
#include "gguf/gguf.h"
#include "gguf/shard.h"
#include "gguf/value.h"

namespace chimere::gguf {
namespace {

constexpr std::string_view kSplitNo = "split.no";
constexpr std::string_view kSplitCount = "split.count";
constexpr std::string_view kSplitTensors = "split.tensors.count";
// Five digits in the name, sixteen bits in the key.
constexpr int64_t kMaxShards = 65535;

// "-00002-of-00003.gguf"; both numbers fit in five digits.
std::string shard_suffix(size_t number, size_t count) {
  char text[64];
  std::snprintf(text, sizeof text, "-%05zu-of-%05zu.gguf", number, count);
  return text;
}

// Prefixes a metadata reader's message with the path.
template <class T>
Result<T> located(const std::string& path, Result<T> result) {
  if (result) return result;
  return Error{Code::corrupt, path + ": " + result.error().message};
}

}  // namespace

struct File::Impl {
  std::string path;
  uint32_t version = 0;
  uint64_t size_bytes = 0;
  size_t n_shards = 0;
  Metadata metadata;                 // of the first shard
  std::vector<MappedFile> mappings;  // one a shard; none for bytes of the caller
  std::vector<TensorView> tensors;
  // Owns the names: its nodes do not move. Ordered, so that chosen names cannot slow it down.
  std::map<std::string, size_t, std::less<>> index;
  MemoryBudget budget;

  // Adds the tensors of a parsed shard, whose data lies in `bytes`.
  Status adopt(Shard& shard, std::span<const std::byte> bytes, const std::string& label) {
    for (TensorInfo& info : shard.tensors) {
      const auto [at, inserted] = index.try_emplace(std::move(info.name), tensors.size());
      if (!inserted) {
        const std::string set = n_shards > 0 ? " (or was in an earlier shard)" : "";
        return Error{Code::corrupt, label + ": tensor " + quoted(at->first) + " appears more than once" + set};
      }
      tensors.push_back({at->first, info.type, info.ne, bytes.data() + shard.data_start + info.offset});
    }
    size_bytes += bytes.size();
    ++n_shards;
    return Ok{};
  }

  // Maps, parses and adopts one file; its metadata and version stay in the returned shard.
  Result<Shard> add_file(const std::string& file_path) {
    TRY_ASSIGN(MappedFile mapped, MappedFile::open(file_path));
    TRY_ASSIGN(Shard shard, parse_shard(mapped.bytes(), file_path, budget));
    TRY(adopt(shard, mapped.bytes(), file_path));
    mappings.push_back(std::move(mapped));
    return Result<Shard>{std::move(shard)};
  }

  Status add_other_shards(size_t count) {
    const std::string first_suffix = shard_suffix(1, count);
    TRY_ASSIGN(const int64_t number, located(path, metadata.get_int(kSplitNo, 0, static_cast<int64_t>(count) - 1)));
    if (number != 0) {
      const std::string own_suffix = shard_suffix(static_cast<size_t>(number) + 1, count);
      const std::string hint = path.ends_with(own_suffix)
                                   ? quoted(path.substr(0, path.size() - own_suffix.size()) + first_suffix)
                                   : "the one named *" + first_suffix;
      return Error{Code::invalid_argument, path + ": is shard " + std::to_string(number + 1) + " of " +
                                               std::to_string(count) + ", open the first one: " + hint};
    }
    if (!path.ends_with(first_suffix)) {
      return Error{Code::invalid_argument, path + ": is the first of " + std::to_string(count) +
                                               " shards, so its name must end in '" + first_suffix +
                                               "' for the others to be found"};
    }
    TRY_ASSIGN(const int64_t n_tensors, located(path, metadata.get_int(kSplitTensors, 0, INT64_MAX)));

    const std::string prefix = path.substr(0, path.size() - first_suffix.size());
    for (size_t i = 1; i < count; ++i) {
      const std::string shard_path = prefix + shard_suffix(i + 1, count);
      auto shard = add_file(shard_path);
      if (!shard) {
        if (shard.error().code == Code::not_found) {
          shard.error().message += " (shard " + std::to_string(i + 1) + " of " + std::to_string(count) + ")";
        }
        return Error{std::move(shard.error())};
      }
      const Metadata& own = shard->metadata;
      TRY_ASSIGN(const int64_t own_number, located(shard_path, own.get_int(kSplitNo, 0, kMaxShards)));
      TRY_ASSIGN(const int64_t own_count, located(shard_path, own.get_int(kSplitCount, 0, kMaxShards)));
      if (own_number != static_cast<int64_t>(i) || own_count != static_cast<int64_t>(count)) {
        return Error{Code::corrupt, shard_path + ": expected split.no " + std::to_string(i) + " of split.count " +
                                        std::to_string(count) + ", found " + std::to_string(own_number) + " of " +
                                        std::to_string(own_count)};
      }
    }
    if (static_cast<uint64_t>(n_tensors) != tensors.size()) {
      return Error{Code::corrupt, path + ": split.tensors.count is " + std::to_string(n_tensors) + ", but the " +
                                      std::to_string(count) + " shards hold " + std::to_string(tensors.size())};
    }
    return Ok{};
  }
};

Result<File> File::open(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  TRY_ASSIGN(Shard shard, impl->add_file(path));
  impl->version = shard.version;
  impl->metadata = std::move(shard.metadata);
  TRY_ASSIGN(const int64_t count, located(path, impl->metadata.get_int_or(kSplitCount, 0, kMaxShards, 1)));
  if (count > 1) TRY(impl->add_other_shards(static_cast<size_t>(count)));
  return Result<File>{File(std::move(impl))};
}

Result<File> File::parse(std::span<const std::byte> bytes, std::string label) {
  auto impl = std::make_unique<Impl>();
  TRY_ASSIGN(Shard shard, parse_shard(bytes, label, impl->budget));
  TRY(impl->adopt(shard, bytes, label));
  impl->version = shard.version;
  impl->metadata = std::move(shard.metadata);
  TRY_ASSIGN(const int64_t count, located(label, impl->metadata.get_int_or(kSplitCount, 0, kMaxShards, 1)));
  if (count > 1) {
    return Error{Code::unsupported, label + ": is one of " + std::to_string(count) +
                                        " shards; a split set opens by the path of its first file"};
  }
  impl->path = std::move(label);
  return Result<File>{File(std::move(impl))};
}

File::File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

const Metadata& File::metadata() const { return impl_->metadata; }
std::span<const TensorView> File::tensors() const { return impl_->tensors; }
const std::string& File::path() const { return impl_->path; }
uint32_t File::version() const { return impl_->version; }
uint64_t File::size_bytes() const { return impl_->size_bytes; }
size_t File::n_shards() const { return impl_->n_shards; }

const TensorView* File::find(std::string_view name) const {
  const auto at = impl_->index.find(name);
  return at == impl_->index.end() ? nullptr : &impl_->tensors[at->second];
}

void File::drop_pages(const TensorView& tensor) const {
  for (const MappedFile& mapped : impl_->mappings) {
    const auto bytes = mapped.bytes();
    // std::less orders pointers into different objects, which plain < need not.
    const std::less<const std::byte*> before;
    if (before(tensor.data, bytes.data()) || !before(tensor.data, bytes.data() + bytes.size())) continue;
    mapped.drop(static_cast<size_t>(tensor.data - bytes.data()), tensor.size_bytes());
    return;
  }
}

}  // namespace chimere::gguf
