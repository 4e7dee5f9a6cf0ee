// api_keys.h  The keys of the server. Only their SHA-256 is kept: neither memory nor the file gives a key away.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere::server {

// 64 hexadecimal digits.
std::string sha256_hex(std::string_view text);

class ApiKeys {
 public:
  // `name` is what the log says instead of the key.
  Status add(std::string name, std::string_view key);
  // Lines "name:sha256hex"; blank ones and those that begin with '#' are skipped. Errors name the line.
  Status add_file(const std::string& path);
  Status add_lines(std::string_view text, const std::string& where);

  bool empty() const { return keys_.empty(); }
  size_t size() const { return keys_.size(); }
  // The name of that key, or nullptr. Takes the same time whatever `given` has in common with the keys.
  const std::string* find(std::string_view given) const;

 private:
  struct Key {
    std::string name;
    std::string sha256;
  };
  Status add_hash(std::string name, std::string sha256, const std::string& where);

  std::vector<Key> keys_;
};

// A new key of 256 random bits, "sk-...".
std::string random_key();

}  // namespace chimere::server
