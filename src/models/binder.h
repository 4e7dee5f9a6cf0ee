// binder.h  Collects the tensors of a model by name, checks every shape, and remembers the first problem.
//
// Architecture files read like the model card: they ask for tensors and append ops, and check `status()` once at the
// end. After a problem every call still returns a usable id, so no caller needs an error path of its own.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "backend/ops.h"
#include "models/weight_source.h"

namespace chimere::models {

class Binder {
 public:
  explicit Binder(WeightSource& source) : source_(source) {}
  // Goes on with a program, whose tensors came from elsewhere.
  Binder(WeightSource& source, Program program) : source_(source), program_(std::move(program)) {}

  // A matrix {in, out} or an expert stack {in, out, n_experts}. Trailing dimensions of 1 are ignored.
  MatrixId matrix(const std::string& name, std::initializer_list<uint64_t> shape);
  MatrixId matrix_if_present(const std::string& name, std::initializer_list<uint64_t> shape);
  // A float vector of n values (any float type in the file; {n}, {1, n}, {n, 1} and {a, b} with a*b = n all count).
  VectorId vector(const std::string& name, uint64_t n);
  VectorId vector_if_present(const std::string& name, uint64_t n);
  // A small matrix as one float vector, row after row, whatever its type.
  VectorId flattened(const std::string& name, std::initializer_list<uint64_t> shape);
  VectorId ones(uint64_t n);
  bool has(const std::string& name);

  // A new matrix made of the given rows of `name`, for files that order rows differently. A stack
  // {in, out, n_experts} gives the same rows of every expert.
  MatrixId gathered_rows(const std::string& name, std::initializer_list<uint64_t> shape, std::span<const uint64_t> rows,
                         const std::string& new_name);

  // A new matrix {n, out} of columns [first, first + n) of `name`, {in, out}. They must be whole blocks of its type.
  MatrixId columns(const std::string& name, std::initializer_list<uint64_t> shape, uint64_t first, uint64_t n,
                   const std::string& new_name);

  BufferId buffer(const std::string& name, uint64_t width);
  RopeId rope(Rope rope);
  int kv_layer(KvLayer layer);
  int recurrent_layer(RecurrentLayer layer);
  void add(Op op) { program_.ops.push_back(std::move(op)); }
  // What was added since the last one is a layer: the residual is complete again.
  void end_layer() { program_.layer_ends.push_back(program_.ops.size()); }

  void fail(Error error);
  Status status() const;
  Program& program() { return program_; }
  Result<Program> finish();

 private:
  const TensorView* require(const std::string& name, const Shape& shape);
  VectorId decoded(const TensorView& tensor);

  WeightSource& source_;
  Program program_;
  std::vector<Error> problems_;  // the first one only
};

}  // namespace chimere::models
