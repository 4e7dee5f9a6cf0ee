#include "text_windows.h"

#include <fstream>

namespace chimere::apps {

Result<quantizer::Windows> read_windows(const std::vector<std::string>& paths, const Tokenizer& tokenizer, int context,
                                        size_t max_windows) {
  if (context < 2) return Error{Code::invalid_argument, "--ctx: expected at least 2"};
  quantizer::Windows windows;
  windows.context = context;
  const auto width = static_cast<size_t>(context);
  const int32_t bos = tokenizer.special_ids().bos;
  size_t n_tokens = 0;
  for (const std::string& path : paths) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return Error{Code::io, path + ": can not be opened"};
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const std::vector<int32_t> ids = tokenizer.encode(text, EncodeMode::plain, false);
    n_tokens += ids.size();
    for (size_t at = 0; at + width <= ids.size(); at += width) {
      if (max_windows > 0 && windows.n_windows() == max_windows) break;
      const size_t first = windows.tokens.size();
      windows.tokens.insert(windows.tokens.end(), ids.begin() + static_cast<std::ptrdiff_t>(at),
                            ids.begin() + static_cast<std::ptrdiff_t>(at + width));
      if (tokenizer.adds_bos() && bos >= 0) windows.tokens[first] = bos;
    }
  }
  if (windows.tokens.empty()) {
    return Error{Code::invalid_argument, (paths.empty() ? std::string("no text") : paths.front()) + ": has " +
                                             std::to_string(n_tokens) + " tokens, a window of --ctx " +
                                             std::to_string(context) + " needs as many"};
  }
  return Result<quantizer::Windows>{std::move(windows)};
}

}  // namespace chimere::apps
