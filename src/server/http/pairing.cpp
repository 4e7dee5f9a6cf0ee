// pairing.cpp  Codes that work once, and the file of the keys they became.
#include "server/http/pairing.h"

#include <openssl/crypto.h>

#include <fstream>
#include <utility>

#include "base/platform/private_file.h"

namespace chimere::server {

const std::string Pairing::name_ = "lan";

Result<std::shared_ptr<Pairing>> Pairing::open(std::string file) {
  std::shared_ptr<Pairing> pairing(new Pairing(std::move(file)));
  if (pairing->file_.empty()) return Result<std::shared_ptr<Pairing>>{std::move(pairing)};
  std::ifstream in(pairing->file_, std::ios::binary);
  std::string line;
  for (size_t n = 0; n < 2 * kMaxBrowsers && std::getline(in, line); ++n) {
    // A line that a crash cut off admits nobody, and keeps nobody else out.
    if (!pairing->keys_.add_lines(line, pairing->file_)) ++pairing->n_damaged_;
  }
  return Result<std::shared_ptr<Pairing>>{std::move(pairing)};
}

std::string Pairing::invite() {
  // Half of a key's bits are enough for what works once, and make a smaller picture.
  constexpr size_t kDigits = 32;
  std::string code = random_key();
  code.erase(0, code.size() - kDigits);
  if (codes_.size() == kMaxOpenCodes) codes_.erase(codes_.begin());
  codes_.push_back(sha256_hex(code));
  return code;
}

Result<std::string> Pairing::accept(std::string_view code) {
  const std::string hash = sha256_hex(code);
  size_t found = codes_.size();
  for (size_t i = 0; i < codes_.size(); ++i) {
    if (CRYPTO_memcmp(hash.data(), codes_[i].data(), hash.size()) == 0) found = i;
  }
  if (found == codes_.size()) {
    return Error{Code::not_found, "the code is none of this server, or was used: each works once"};
  }
  if (keys_.size() >= kMaxBrowsers) {
    return Error{Code::exhausted, "expected at most " + std::to_string(kMaxBrowsers) +
                                      " browsers, found as many: start the server with --forget-browsers"};
  }
  const std::string key = random_key();
  const std::string key_hash = sha256_hex(key);
  const std::string name = "browser-" + key_hash.substr(0, 8);
  // On the disk first: a key that was given out is not forgotten by a crash.
  if (!file_.empty()) TRY(append_private_line(file_, name + ":" + key_hash));
  TRY(keys_.add(name, key));
  codes_.erase(codes_.begin() + static_cast<std::ptrdiff_t>(found));
  if (on_accepted_) on_accepted_();
  return key;
}

}  // namespace chimere::server
