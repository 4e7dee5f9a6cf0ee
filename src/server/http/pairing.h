// pairing.h  Browsers that are let in without a key being typed: a code that works once, which a QR code carries, is
// exchanged for a key of that browser.
//
//   server: invite() -> code -> QR code -> browser -> POST /v1/pair -> accept(code) -> key, which the browser keeps
//
// Whoever sees the QR code later, in a photograph or over a shoulder, has a code that was used. Of codes and keys only
// hashes are kept, those of keys in a file, so that a browser stays known when the server starts again. Used on the I/O
// thread, or before that runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http/api_keys.h"

namespace chimere::server {

class Pairing {
 public:
  static constexpr size_t kMaxBrowsers = 64;
  static constexpr size_t kMaxOpenCodes = 4;

  // Reads the file when there is one. Empty: keys are gone when the server ends.
  static Result<std::shared_ptr<Pairing>> open(std::string file);

  // A new code; beyond kMaxOpenCodes that were not used the oldest is void.
  std::string invite();
  // The key in exchange for a code. Unauthorised where the code is none, or was used.
  Result<std::string> accept(std::string_view code);
  // Called when a code was used, so that the next one can be shown.
  void on_accepted(std::function<void()> call) { on_accepted_ = std::move(call); }

  // What all of them are called, or nullptr: they are one person's, so that their conversations are the same.
  const std::string* find(std::string_view key) const { return keys_.find(key) ? &name_ : nullptr; }
  static const std::string& name() { return name_; }
  size_t n_browsers() const { return keys_.size(); }
  size_t n_damaged() const { return n_damaged_; }  // lines of the file that are no keys

 private:
  explicit Pairing(std::string file) : file_(std::move(file)) {}

  static const std::string name_;
  const std::string file_;
  ApiKeys keys_;
  size_t n_damaged_ = 0;
  std::vector<std::string> codes_;  // hashes, oldest first
  std::function<void()> on_accepted_;
};

}  // namespace chimere::server
