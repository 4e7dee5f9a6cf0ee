// api_keys.h  The keys of the server. Only their SHA-256 is kept: neither memory nor the file gives a key away.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere::server {

// 64 hexadecimal digits.
std::string sha256_hex(std::string_view text);

struct ApiKey {
  std::string name;
  std::string sha256;
  uint64_t tokens_per_day = 0;  // that it may use; 0: any number
  bool is_admin = false;        // sees what all keys do
};

// The line of a key in a file of keys.
std::string key_line(const ApiKey& key);

class ApiKeys {
 public:
  // `name` is what the log says instead of the key.
  Status add(std::string name, std::string_view key, bool is_admin = false);
  // Lines "name:sha256hex", behind which ":tokens-per-day=N" and ":admin" may stand; blank ones and those that begin
  // with '#' are skipped. Errors name the line.
  Status add_file(const std::string& path);
  Status add_lines(std::string_view text, const std::string& where);

  bool empty() const { return keys_.empty(); }
  // nullptr: there is none of that name.
  const ApiKey* named(std::string_view name) const;
  const std::vector<ApiKey>& all() const { return keys_; }
  size_t size() const { return keys_.size(); }
  // nullptr: it is none of them. Takes the same time whatever `given` has in common with the keys.
  const ApiKey* find(std::string_view given) const;

 private:
  Status add_hashed(ApiKey key, const std::string& where);

  std::vector<ApiKey> keys_;
};

// A new key of 256 random bits, "sk-...".
std::string random_key();

}  // namespace chimere::server
