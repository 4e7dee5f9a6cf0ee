// fill_in.cpp  The tokens around a gap.
#include "orchestrator/fill_in.h"

namespace chimere::orchestrator {

Result<std::vector<int32_t>> fill_in_prompt(const Tokenizer& tokenizer, const std::string& prefix, const FillIn& gap) {
  const SpecialIds& special = tokenizer.special_ids();
  if (special.fim_pre < 0 || special.fim_suf < 0 || special.fim_mid < 0) {
    return Error{Code::unsupported,
                 "this model was not made to fill in gaps: its vocabulary has no tokens for the text before and behind "
                 "one; use a model for code that has them, such as Qwen2.5-Coder"};
  }
  std::vector<int32_t> ids;
  const auto add_text = [&](const std::string& text) {
    const std::vector<int32_t> more = tokenizer.encode(text, EncodeMode::plain, false);
    ids.insert(ids.end(), more.begin(), more.end());
  };
  if (tokenizer.adds_bos() && special.bos >= 0) ids.push_back(special.bos);
  if (!gap.files.empty() && special.fim_rep >= 0) {
    ids.push_back(special.fim_rep);
    add_text("project\n");
  }
  for (const FillIn::File& file : gap.files) {
    if (special.fim_sep >= 0) {
      ids.push_back(special.fim_sep);
      add_text(file.name + "\n" + file.text);
    } else {
      add_text("\n\n" + file.name + "\n" + file.text);
    }
  }
  if (!gap.files.empty() && special.fim_sep >= 0) {
    ids.push_back(special.fim_sep);
    add_text("main\n");
  }
  ids.push_back(special.fim_pre);
  add_text(prefix);
  ids.push_back(special.fim_suf);
  add_text(gap.suffix);
  ids.push_back(special.fim_mid);
  return ids;
}

}  // namespace chimere::orchestrator
