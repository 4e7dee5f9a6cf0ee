// untrusted.h  Text that a stranger wrote. It may be shown, searched and quoted to a model as data; it is never a
// system message, a template's own words, an instruction, or something to learn from. So it is a type of its own, and
// every place that turns it into plain text says so.
#pragma once

#include <string>
#include <utility>

namespace chimere::web {

class UntrustedText {
 public:
  UntrustedText() = default;
  explicit UntrustedText(std::string text) : text_(std::move(text)) {}

  const std::string& as_data() const { return text_; }
  bool empty() const { return text_.empty(); }

 private:
  std::string text_;
};

}  // namespace chimere::web
