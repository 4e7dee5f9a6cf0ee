// api_keys.cpp  Hashes, and the file they are kept in.
#include "server/http/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace chimere::server {
namespace {

constexpr size_t kHashDigits = 64;
constexpr size_t kMaxKeys = 10'000;
constexpr size_t kMaxFileBytes = size_t{4} << 20;
constexpr size_t kMaxNameBytes = 64;
constexpr std::string_view kBudget = "tokens-per-day=";
constexpr std::string_view kAdmin = "admin";

std::string hex(const unsigned char* bytes, size_t n) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < n; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' || c == '@';
  });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// What stands behind the hash: "tokens-per-day=5000:admin".
Status read_rights(std::string_view text, ApiKey& key, const std::string& place) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(':'), text.size());
    const std::string_view word = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word == kAdmin) {
      key.is_admin = true;
      continue;
    }
    const std::string_view number = word.substr(std::min(kBudget.size(), word.size()));
    const auto read = std::from_chars(number.data(), number.data() + number.size(), key.tokens_per_day);
    const bool is_budget = word.starts_with(kBudget) && read.ec == std::errc() && key.tokens_per_day > 0 &&
                           read.ptr == number.data() + number.size();
    // The word itself is not shown: it may be part of a key.
    if (!is_budget) {
      return Error{Code::invalid_argument,
                   place + ": expected tokens-per-day=NUMBER or admin behind the hash, found something else"};
    }
  }
  return Ok{};
}

}  // namespace

std::string sha256_hex(std::string_view text) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int n = 0;
  CHECK(EVP_Digest(text.data(), text.size(), hash, &n, EVP_sha256(), nullptr) == 1);
  return hex(hash, n);
}

std::string random_key() {
  unsigned char bytes[32];
  CHECK(RAND_bytes(bytes, sizeof bytes) == 1);
  return "sk-" + hex(bytes, sizeof bytes);
}

std::string key_line(const ApiKey& key) {
  std::string line = key.name + ":" + key.sha256;
  if (key.tokens_per_day > 0) line += ":" + std::string(kBudget) + std::to_string(key.tokens_per_day);
  if (key.is_admin) line += ":" + std::string(kAdmin);
  return line;
}

Status ApiKeys::add(std::string name, std::string_view key, bool is_admin) {
  if (key.empty()) return Error{Code::invalid_argument, "API key " + name + ": expected a text, found nothing"};
  return add_hashed({std::move(name), sha256_hex(key), 0, is_admin}, "API keys");
}

Status ApiKeys::add_hashed(ApiKey key, const std::string& where) {
  if (!is_name(key.name)) {
    return Error{Code::invalid_argument,
                 where + ": expected a name of at most 64 letters, digits and '-_.@' before ':'"};
  }
  std::string& sha256 = key.sha256;
  std::transform(sha256.begin(), sha256.end(), sha256.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  const bool is_hash = sha256.size() == kHashDigits && std::all_of(sha256.begin(), sha256.end(), [](char c) {
                         return std::isxdigit(static_cast<unsigned char>(c)) != 0;
                       });
  if (!is_hash) {
    return Error{Code::invalid_argument, where + ": expected 64 hexadecimal digits (SHA-256) behind the name '" +
                                             key.name + "', found " + std::to_string(sha256.size()) + " characters"};
  }
  if (named(key.name)) {
    return Error{Code::invalid_argument, where + ": the name '" + key.name + "' is there twice"};
  }
  if (keys_.size() >= kMaxKeys) {
    return Error{Code::invalid_argument,
                 where + ": expected at most " + std::to_string(kMaxKeys) + " keys, found more"};
  }
  keys_.push_back(std::move(key));
  return Ok{};
}

Status ApiKeys::add_lines(std::string_view text, const std::string& where) {
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::string place = where + ":" + std::to_string(number);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      return Error{Code::invalid_argument, place + ": expected name:sha256hex, found no ':'"};
    }
    const std::string_view rest = line.substr(colon + 1);
    const size_t hash_end = std::min(rest.find(':'), rest.size());
    ApiKey key{std::string(trimmed(line.substr(0, colon))), std::string(trimmed(rest.substr(0, hash_end)))};
    TRY(read_rights(rest.substr(std::min(hash_end + 1, rest.size())), key, place));
    TRY(add_hashed(std::move(key), place));
  }
  return Ok{};
}

Status ApiKeys::add_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Code::io, "cannot read the file of API keys " + path};
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxFileBytes) {
    return Error{Code::invalid_argument, path + ": expected at most " + std::to_string(kMaxFileBytes) + " bytes"};
  }
  const size_t before = keys_.size();
  TRY(add_lines(text, path));
  if (keys_.size() == before)
    return Error{Code::invalid_argument, path + ": expected lines name:sha256hex, found none"};
  return Ok{};
}

const ApiKey* ApiKeys::named(std::string_view name) const {
  const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const ApiKey& key) { return key.name == name; });
  return found == keys_.end() ? nullptr : &*found;
}

const ApiKey* ApiKeys::find(std::string_view given) const {
  const std::string hash = sha256_hex(given);
  const ApiKey* found = nullptr;
  // All of them are looked at, also behind the one that matches.
  for (const ApiKey& key : keys_) {
    if (CRYPTO_memcmp(hash.data(), key.sha256.data(), kHashDigits) == 0) found = &key;
  }
  return found;
}

}  // namespace chimere::server
