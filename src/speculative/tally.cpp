#include "speculative/tally.h"

namespace chimere::speculative {

const char* name(Source source) {
  switch (source) {
    case Source::forced: return "forced";
    case Source::text: return "ngram";
    case Source::own: return "own";
    case Source::mtp: return "mtp";
    case Source::engram: return "engram";
    case Source::draft_model: return "draft";
    case Source::dflash: return "dflash";
  }
  return "";
}

Source source_of(Kind kind) {
  if (kind >= kFirstDFlash) return Source::dflash;
  if (kind >= kFirstDraftModel) return Source::draft_model;
  if (kind >= kFirstEngram) return Source::engram;
  if (kind >= kFirstPass) return Source::mtp;
  if (kind >= kFirstOwn) return Source::own;
  return kind >= kFirstRepeat ? Source::text : Source::forced;
}

Tally::Count Tally::total(Source source) const {
  Count sum;
  for (const Count& count : of(source)) {
    sum.tried += count.tried;
    sum.taken += count.taken;
  }
  return sum;
}

}  // namespace chimere::speculative
