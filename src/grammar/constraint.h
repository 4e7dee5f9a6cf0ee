// constraint.h  A grammar at work on one answer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/recogniser.h"
#include "grammar/token_grammar.h"
#include "sampling/token_constraint.h"

namespace chimere::grammar {

class GrammarConstraint final : public TokenConstraint {
 public:
  explicit GrammarConstraint(std::shared_ptr<const TokenGrammar> grammar);

  std::unique_ptr<TokenConstraint> clone() const override;
  std::span<const std::uint64_t> mask() override;
  void accept(std::int32_t id) override;
  bool is_finished() const override { return here_.places.empty(); }

  // Whether the text so far is complete.
  bool may_end() const { return here_.may_end; }
  // Makes the masks of the states that the text is at now, which may take longest the first time.
  void prepare() { mask(); }

 private:
  struct Known {
    std::vector<Place> places;  // with counts that stand for all equal ones
    bool may_end = false;
    std::vector<std::uint64_t> bits;
    std::uint64_t used = 0;  // when, in calls of mask()
  };
  // Masks of one answer that are kept: strings and numbers come back to theirs token after token.
  static constexpr size_t kKept = 16;
  static constexpr size_t kMaxFrames = 1 << 16;

  void read(std::string_view bytes, PlaceSet& set);
  void allow(const Place& place, std::vector<std::uint64_t>& bits, std::int64_t& budget);
  void allow_beyond(const StateMask& mask, FrameId frame, std::vector<std::uint64_t>& bits, std::int64_t& budget);

  std::shared_ptr<const TokenGrammar> grammar_;
  Recogniser recogniser_;
  PlaceSet here_;
  std::vector<Known> known_;
  std::uint64_t n_calls_ = 0;
  TreeWalk walk_;
};

}  // namespace chimere::grammar
