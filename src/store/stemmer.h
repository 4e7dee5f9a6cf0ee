// stemmer.h  Words as an index of FTS5 has them: small letters, without accents and English endings.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"

namespace chimere::store {

// Of one thread at a time. What it gives is what the tokenizer "porter unicode61 remove_diacritics 2" puts into an index.
class Stemmer {
 public:
  static Result<Stemmer> open();
  Stemmer(Stemmer&& other) noexcept;
  Stemmer& operator=(Stemmer&&) = delete;
  ~Stemmer();

  // Tells of each word of a text, in their order; what is told of lives as long as the call.
  Status each(std::string_view text, const std::function<void(std::string_view stem)>& tell);

 private:
  struct Impl;
  explicit Stemmer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace chimere::store
