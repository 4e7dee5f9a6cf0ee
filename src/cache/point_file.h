// point_file.h  The on-disk format of the prefix cache: one kept position of a prompt.
//
// Two kinds of files, both named after what is in them:
//   NAME.point   the tokens up to the position, the names of the whole KV pages, the last page that is not whole, and
//                the recurrent state. NAME: 16 hexadecimal digits, the hash of model key, scope and tokens.
//   NAME.page    one whole KV page as the backend holds it. NAME: 32 digits, the hash of these bytes. Positions of one
//                conversation share their pages, and so do conversations with the same beginning.
//
//   .point:  magic "CHIMPOIN" | version u32 | flags u32 | key u64 | scope u64 | owner u64
//            | length u32 | prefilled u32 | n_pages u32 | has_tail u32 | page_bytes u64 | recurrent_bytes u64
//            tokens i32[length] | page names u64[2][n_pages] | checksum u64 of all before it
//            tail page | recurrent state | checksum u64 of tail and state
// Little-endian. The first checksum lets an index be built without reading states. Every size is implied by the layout
// and compared with it before anything is allocated.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/state_layout.h"
#include "base/result.h"

namespace chimere {

inline constexpr uint64_t kMaxPointTokens = uint64_t{1} << 24;

// The name of a position: of no tokens, and then on from the hash of fewer.
uint64_t prefix_hash(uint64_t key, uint64_t scope);
uint64_t prefix_hash(uint64_t hash, std::span<const int32_t> more);

struct PageName {
  uint64_t a = 0, b = 0;
  auto operator<=>(const PageName&) const = default;
};
PageName page_name(std::span<const std::byte> page);

std::string point_file_name(uint64_t name);
std::string page_file_name(const PageName& name);
// False for names that are none of ours.
bool parse_point_file_name(std::string_view text, uint64_t& name);
bool parse_page_file_name(std::string_view text, PageName& name);

// What is kept of a position beside its state.
struct PointRecord {
  uint64_t scope = 0;
  uint64_t owner = 0;  // whose prompt it was; one owner may have several scopes
  std::vector<int32_t> tokens;
  int32_t prefilled = 0;        // tokens before this were computed as a prompt, those behind it were decoded
  bool is_filler = false;       // kept for its distance from others, not for where it lies in a conversation
  std::vector<PageName> pages;  // the whole ones

  uint64_t name(uint64_t key) const { return prefix_hash(prefix_hash(key, scope), tokens); }
};

struct PointBytes {
  std::vector<std::byte> tail;  // the page that is not whole, if there is one
  std::vector<std::byte> recurrent;
};

// What a file must agree with.
struct PointFormat {
  uint64_t key = 0;  // of the model and everything else that its state depends on
  uint64_t page_bytes = 0;
  uint64_t recurrent_bytes = 0;

  bool has_tail(uint64_t length) const { return page_bytes > 0 && length % kPageTokens != 0; }
  uint64_t n_pages(uint64_t length) const { return page_bytes > 0 ? length / kPageTokens : 0; }
};

// REQUIRES: sizes as the format says.
std::vector<std::byte> encode_point(const PointFormat& format, const PointRecord& record, const PointBytes& state);
// How many bytes at the start of a file, at most, parse_point_head() reads.
uint64_t point_head_bytes(std::span<const std::byte> first);
inline constexpr uint64_t kPointHeaderBytes = 72;
// The record alone, from the start of a file.
Result<PointRecord> parse_point_head(const PointFormat& format, std::span<const std::byte> bytes);
// All of it. Refuses, with the reason, what is of another version, key, layout or checksum.
Result<PointRecord> parse_point(const PointFormat& format, std::span<const std::byte> bytes, PointBytes& state);

}  // namespace chimere
