// weight_source.h  Where a model's metadata and tensors come from: a GGUF file, or shapes alone (bench --synthetic).
#pragma once

#include <string_view>

#include "gguf/gguf.h"
#include "tensor/tensor_view.h"

namespace chimere::models {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual const gguf::Metadata& metadata() const = 0;

  // The tensor of that name, or nullptr. `wanted` is the shape the model expects: a file ignores it (the binder
  // compares), a synthetic source makes a required tensor of it.
  virtual const TensorView* find(std::string_view name, const Shape& wanted, bool required) = 0;

  // The backend has its own copy of this tensor now.
  virtual void taken(const TensorView& tensor) = 0;
};

class FileSource : public WeightSource {
 public:
  explicit FileSource(const gguf::File& file) : file_(file) {}
  const gguf::Metadata& metadata() const override { return file_.metadata(); }
  const TensorView* find(std::string_view name, const Shape&, bool) override { return file_.find(name); }
  void taken(const TensorView& tensor) override { file_.drop_pages(tensor); }

 private:
  const gguf::File& file_;
};

}  // namespace chimere::models
