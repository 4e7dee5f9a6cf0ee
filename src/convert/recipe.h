// recipe.h  What a converted file consists of: its metadata, and for each tensor where its values come from.
//
// Rules (one small file for each family) fill a recipe from config.json and the names in the checkpoint; nothing is
// read yet. A tensor is described row by row, so that any of them is written in a stream, whatever its size:
//
//   sources    tensors of the checkpoint whose rows follow one another (experts are stacked this way)
//   rows       which source row an output row is (head orders, halves of a fused tensor)
//   columns    which source column an output column is
//   edit       what is done to the values of a row (norms stored as 1 + w, -exp(A_log), folded multipliers)
//
// The first mistake of the checkpoint is kept and everything after it is harmless, so rules read like tables; status()
// tells it in the end.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/checkpoint.h"
#include "convert/hf_config.h"
#include "gguf/gguf.h"
#include "tensor/tensor_view.h"

namespace chimere::convert {

using IndexMap = std::function<uint64_t(uint64_t)>;
using RowEdit = std::function<void(uint64_t row, std::span<float> values)>;

// Matrices are stored in the type the user chose. What stays F32: vectors, routers, convolutions.
enum class Storage { matrix, f32, mxfp4 };

struct Target {
  std::string name;
  Shape ne = {1, 1, 1, 1};
  Storage storage = Storage::f32;
  std::vector<const StoredTensor*> sources;  // of equal shape
  IndexMap rows;                             // over the rows of all sources; identity when empty
  IndexMap columns;                          // identity when empty
  // Not 0: a source is a list of matrices of this many columns, ne[0] rows each, and its columns are our rows.
  uint64_t transposed_columns = 0;
  RowEdit edit;                          // none when empty
  const StoredTensor* scales = nullptr;  // of MXFP4 blocks
  std::vector<float> values;             // made by the rules instead of read, F32

  Target& with_rows(IndexMap map);
  Target& with_columns(IndexMap map);
  Target& with_edit(RowEdit e);
  Target& times(double factor);  // none for 1
  Target& plus_one();
  Target& minus_exp();  // -exp(x)
  Target& shaped(const Shape& shape);
};

class Recipe {
 public:
  Recipe(const Checkpoint& checkpoint, const HfConfig& config, std::string arch);

  // Settings of config.json. A missing or wrong one is kept as the error and 0 returned.
  int64_t integer(std::string_view key);  // 1 or more
  // 1 to `most`; what is beyond it is an error and 1 is returned, so that loops over it end.
  int64_t count(std::string_view key, int64_t most);
  int64_t integer_or(std::string_view key, int64_t fallback);
  double number(std::string_view key);
  double number_or(std::string_view key, double fallback);
  bool flag_or(std::string_view key, bool fallback);
  std::string text_or(std::string_view key, std::string fallback);
  std::vector<int64_t> integers(std::string_view key);
  std::vector<double> numbers(std::string_view key);
  std::vector<std::string> texts(std::string_view key);
  bool configured(std::string_view key) const { return config_.has(key); }

  // Metadata under the architecture's prefix, in the types that other programs write.
  void set_int(std::string_view key, int64_t value);
  void set_ints(std::string_view key, const std::vector<int64_t>& values);
  void set_float(std::string_view key, double value);
  void set_bool(std::string_view key, bool value);
  void set_string(std::string_view key, std::string value);

  // Tensors, in the order of the file. The shape is the source's, last dimension first and without ones, unless
  // changed.
  Target& matrix(std::string name, const std::string& source);
  Target& f32(std::string name, const std::string& source);
  // Stacked along a new last dimension.
  Target& matrix(std::string name, const std::vector<std::string>& sources);
  Target& mxfp4(std::string name, const std::string& blocks, const std::string& scales, const Shape& ne);
  void computed(std::string name, std::vector<float> values);

  bool has(const std::string& source) const { return checkpoint_.find(source) != nullptr; }
  // The tensor, counted as used; nullptr when it is missing, which is kept as the error.
  const StoredTensor* require(const std::string& source);
  // A tensor that the file does not need: tied heads, buffers.
  void skip(const std::string& source) { used_.insert(source); }

  void fail(Code code, const std::string& message);
  Status status() const;
  void note(std::string text) { notes_.push_back(std::move(text)); }

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const std::string& arch() const { return arch_; }
  gguf::Metadata& metadata() { return metadata_; }
  const gguf::Metadata& metadata() const { return metadata_; }
  const std::vector<Target>& targets() const { return targets_; }
  const std::vector<std::string>& notes() const { return notes_; }
  // Names in the checkpoint that nothing asked for.
  std::vector<std::string> unused() const;

 private:
  template <class T, class Find>
  T setting(std::string_view key, Find find, const T* fallback);
  Target& add(std::string name, Storage storage, const std::vector<std::string>& sources);

  const Checkpoint& checkpoint_;
  const HfConfig& config_;
  std::string arch_;
  gguf::Metadata metadata_;
  std::vector<Target> targets_;
  std::set<std::string, std::less<>> used_;
  std::vector<std::string> notes_;
  Status status_ = Ok{};
  Target spare_;  // what add() gives after an error
};

}  // namespace chimere::convert
