// constraint.h  A grammar at work on one answer.
#pragma once

#include <algorithm>
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
  bool prepare(std::int64_t steps) override;
  void accept(std::int32_t id) override;
  bool is_finished() const override { return here_.places.empty(); }
  bool may_end() const override { return here_.may_end; }
  std::int32_t n_text() const override { return here_.may_end ? 0 : std::max(n_text_, n_digits_); }
  std::vector<std::int32_t> completion(Part part) override;
  bool can_end_after(std::int32_t id, std::int32_t n_tokens) override;

  // Where any plain text may follow and one byte ends it, as in a string.
  bool is_in_text() const;
  // Steps taken so far for this answer: what it costs.
  std::uint64_t work() const { return recogniser_.work(); }

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
  // Steps of one completion. A document of JSON takes about five a byte.
  static constexpr std::uint64_t kMaxCompletion = 200'000;

  std::vector<Place> key() const;
  Known* find(const std::vector<Place>& key);
  // False when the budget was not enough, unless that was the whole one.
  bool make(std::vector<Place> key, std::int64_t budget);
  void allow(const std::vector<Place>& places, std::vector<std::uint64_t>& bits, std::int64_t& budget);
  void allow_beyond(const StateMask& mask, std::span<const FrameId> frames, std::vector<std::uint64_t>& bits,
                    std::int64_t& budget);
  void read(std::string_view bytes, PlaceSet& set);
  PlaceSet after(std::int32_t id);
  // The shortest text that brings the set so near to the end, as tokens.
  std::vector<std::int32_t> completion(PlaceSet set, std::uint32_t to_end);

  std::shared_ptr<const TokenGrammar> grammar_;
  Recogniser recogniser_;
  PlaceSet here_;
  std::int32_t n_text_ = 0, n_digits_ = 0;  // of the last tokens
  std::vector<Known> known_;
  std::uint64_t n_calls_ = 0;
  TreeWalk walk_;
};

}  // namespace chimere::grammar
