// utf8.cpp  Text is UTF-8 everywhere, and bytes are what they are.
//
// The manifest (cmake/windows.manifest) makes UTF-8 the code page of the process: names of files, arguments and the
// environment are UTF-8 for the C library and for every library of others. Three things do not follow from it and are
// done here: std::filesystem::path(std::string) asks the C library's mbrtowc, whose "C" locale takes bytes for Latin-1;
// the C library would change line ends in files and streams; and a console shows another code page.
// cmake/windows.cmake makes the linker take this file into every program.
#include <fcntl.h>
#include <io.h>

#include <cstdlib>
#include <cwchar>

#include "base/platform/windows/files.h"

namespace {

// The second half of a pair of UTF-16 that is still to be told, in mbstate_t: its low ten bits but six, and a mark.
constexpr int kHalf = 1 << 16;

constexpr auto kInvalid = static_cast<size_t>(-1), kIncomplete = static_cast<size_t>(-2);

bool continues(unsigned char c) { return (c & 0xC0) == 0x80; }

}  // namespace

// As C99 has it, but that a character beyond 16 bits comes in two calls: three of its bytes, then the last one.
extern "C" size_t mbrtowc(wchar_t* to, const char* from, size_t n, mbstate_t* state) {
  static mbstate_t own{};
  mbstate_t& kept = state ? *state : own;
  if (!from) {
    kept = {};
    return 0;
  }
  if (n == 0) return kIncomplete;
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  const auto tell = [&](unsigned unit, size_t length) {
    if (to) *to = static_cast<wchar_t>(unit);
    return unit == 0 ? 0 : length;
  };
  if (kept != 0) {
    const unsigned half = static_cast<unsigned>(kept) & 0x3C0;
    kept = {};
    return continues(bytes[0]) ? tell(0xDC00 | half | (bytes[0] & 0x3F), 1) : kInvalid;
  }
  if (bytes[0] < 0x80) return tell(bytes[0], 1);
  const size_t length = bytes[0] >= 0xF0 ? 4 : bytes[0] >= 0xE0 ? 3 : 2;
  if (bytes[0] < 0xC2 || bytes[0] > 0xF4) return kInvalid;
  const size_t now = length == 4 ? 3 : length;
  for (size_t i = 1; i < now; ++i) {
    if (i == n) return kIncomplete;
    if (!continues(bytes[i])) return kInvalid;
  }
  if (length == 2) return tell((bytes[0] & 0x1Fu) << 6 | (bytes[1] & 0x3Fu), 2);
  const unsigned upper = (bytes[0] & 0x0Fu) << 12 | (bytes[1] & 0x3Fu) << 6 | (bytes[2] & 0x3Fu);
  if (length == 3) {
    const bool is_half = upper >= 0xD800 && upper <= 0xDFFF;
    return upper < 0x800 || is_half ? kInvalid : tell(upper, 3);
  }
  // `upper` is the character without its last six bits.
  const unsigned high = ((bytes[0] & 0x07u) << 12 | (bytes[1] & 0x3Fu) << 6 | (bytes[2] & 0x3Fu));
  if (high < 0x10000 >> 6 || high > 0x10FFFF >> 6) return kInvalid;
  kept = kHalf | static_cast<int>((high & 0x0F) << 6);
  return tell(0xD800 + ((high - (0x10000 >> 6)) >> 4), 3);
}

// The C library has these two in the same object file as its mbrtowc, so that they come from here, too.
extern "C" size_t mbrlen(const char* from, size_t n, mbstate_t* state) { return mbrtowc(nullptr, from, n, state); }

extern "C" size_t mbsrtowcs(wchar_t* to, const char** from, size_t n, mbstate_t* state) {
  const char* at = *from;
  size_t done = 0;
  for (; !to || done < n; ++done) {
    wchar_t unit = 0;
    const size_t used = mbrtowc(&unit, at, 4, state);
    if (used == kInvalid || used == kIncomplete) return kInvalid;
    if (to) to[done] = unit;
    if (used == 0) {
      if (to) *from = nullptr;
      return done;
    }
    at += used;
  }
  *from = at;
  return done;
}

namespace {

// Before main() and before whatever else is made before it.
__attribute__((constructor(101))) void take_bytes_as_they_are() {
  _fmode = _O_BINARY;
  for (const int stream : {0, 1, 2}) _setmode(stream, _O_BINARY);
  SetConsoleCP(CP_UTF8);
  SetConsoleOutputCP(CP_UTF8);
}

}  // namespace
