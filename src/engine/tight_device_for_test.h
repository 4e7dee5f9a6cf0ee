// tight_device_for_test.h  The CPU backend as a device whose memory for states ends where a test says, whatever the
// engine was told: a card of which other programs take a part.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "backend/backend.h"

namespace chimere::engine {

class TightDevice final : public Executable {
 public:
  static Result<std::unique_ptr<Executable>> compile(Program program, const LoadOptions& options) {
    TRY_ASSIGN(auto inner, cpu::compile(std::move(program), options));
    return std::unique_ptr<Executable>(new TightDevice(std::move(inner)));
  }
  // Of all devices together: the most that states may have, and what they have.
  static inline std::atomic<uint64_t> room = UINT64_MAX, held = 0;
  // Why wake() fails, and how often it was asked; kAwake: it does not.
  static constexpr Code kAwake = Code::cancelled;  // no device fails so
  static inline std::atomic<Code> waking = kAwake;
  static inline std::atomic<int> n_wakes = 0;

  Status run(const Batch& batch, const Outputs& outputs) override { return inner_->run(batch, outputs); }
  Status replay(float* recurrent, const float* recorded, int n_tokens) override {
    return inner_->replay(recurrent, recorded, n_tokens);
  }
  Result<uint64_t> sleep() override { return uint64_t{1} << 20; }
  Status wake() override {
    ++n_wakes;
    if (waking == kAwake) return Ok{};
    return Error{waking, "others hold the card"};
  }
  const Program& program() const override { return inner_->program(); }
  const StateLayout& layout() const override { return inner_->layout(); }
  StateMemory& memory() override { return memory_; }
  int max_rows() const override { return inner_->max_rows(); }
  int prefill_rows() const override { return inner_->prefill_rows(); }
  uint64_t weight_bytes() const override { return inner_->weight_bytes(); }
  uint64_t scratch_bytes() const override { return inner_->scratch_bytes(); }

 private:
  class Memory final : public StateMemory {
   public:
    explicit Memory(StateMemory& inner) : inner_(inner) {}
    Result<std::byte*> allocate(uint64_t bytes, uint64_t unset_bytes) override {
      if (held + bytes > room) return Error{Code::exhausted, "no room for " + std::to_string(bytes) + " bytes"};
      held += bytes;
      return inner_.allocate(bytes, unset_bytes);
    }
    void release(std::byte* memory, uint64_t bytes) override {
      held -= bytes;
      inner_.release(memory, bytes);
    }
    void zero(std::byte* to, uint64_t bytes) override { inner_.zero(to, bytes); }
    void copy(std::byte* to, const std::byte* from, uint64_t bytes) override { inner_.copy(to, from, bytes); }
    void read(std::byte* host, const std::byte* from, uint64_t bytes) override { inner_.read(host, from, bytes); }
    void write(std::byte* to, const std::byte* host, uint64_t bytes) override { inner_.write(to, host, bytes); }

   private:
    StateMemory& inner_;
  };

  explicit TightDevice(std::unique_ptr<Executable> inner) : inner_(std::move(inner)), memory_(inner_->memory()) {}

  std::unique_ptr<Executable> inner_;
  Memory memory_;
};

}  // namespace chimere::engine
