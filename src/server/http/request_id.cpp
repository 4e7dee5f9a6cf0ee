// request_id.cpp  A random prefix and a count.
#include "server/http/request_id.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <random>

namespace chimere::server {
namespace {

constexpr size_t kLongest = 64;

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' || c == ':';
}

}  // namespace

std::string new_request_id() {
  static const uint32_t run = std::random_device{}();
  static std::atomic<uint64_t> count{0};
  char text[48];
  std::snprintf(text, sizeof text, "req-%08x-%llu", run, static_cast<unsigned long long>(++count));
  return text;
}

std::string request_id_or_new(std::string_view wanted) {
  const bool usable =
      !wanted.empty() && wanted.size() <= kLongest && std::all_of(wanted.begin(), wanted.end(), is_plain);
  return usable ? std::string(wanted) : new_request_id();
}

}  // namespace chimere::server
