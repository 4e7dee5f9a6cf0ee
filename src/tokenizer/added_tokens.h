// added_tokens.h  Finding control and user-defined tokens in text: the longest at each place, left to right.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/vocab.h"

namespace chimere::tokenizer {

class AddedTokens {
 public:
  // Which text may hold a token.
  enum class Trust : uint8_t {
    any,       // user-defined and nothing but spaces: no text can do harm with it
    text,      // user-defined
    template_  // control and unknown
  };

  static Result<AddedTokens> from_vocab(const Vocab& vocab);

  int32_t find(std::string_view text) const;  // -1 when there is none
  bool may_start(char c) const { return roots_[static_cast<uint8_t>(c)] >= 0; }

  struct Match {
    int32_t id = -1;
    size_t len = 0;
  };
  // The longest token at `pos` for which permit(trust, len) holds.
  template <class Permit>
  Match longest_at(std::string_view text, size_t pos, Permit&& permit) const {
    Match best;
    int32_t node = roots_[static_cast<uint8_t>(text[pos])];
    for (size_t len = 1; node >= 0; ++len) {
      const Node& n = nodes_[node];
      if (n.id >= 0 && permit(n.trust, len)) best = {n.id, len};
      node = pos + len < text.size() ? child_of(node, text[pos + len]) : -1;
    }
    return best;
  }

 private:
  struct Node {
    char byte;
    Trust trust = Trust::template_;
    int32_t id = -1;  // of the token that ends here
    int32_t child = -1, sibling = -1;
  };
  int32_t child_of(int32_t node, char byte) const;
  void add(std::string_view text, int32_t id, Trust trust);

  std::array<int32_t, 256> roots_{};
  std::vector<Node> nodes_;
};

}  // namespace chimere::tokenizer
