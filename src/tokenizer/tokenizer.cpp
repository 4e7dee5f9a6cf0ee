// tokenizer.cpp  Special tokens cut the text; the stretches between go through the model's algorithm.
#include "tokenizer/tokenizer.h"

#include <variant>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/spm.h"
#include "tokenizer/unigram.h"
#include "tokenizer/wordpiece.h"

namespace chimere {

using tokenizer::AddedTokens;
using tokenizer::Bpe;
using tokenizer::Spm;
using tokenizer::Unigram;
using tokenizer::Vocab;
using tokenizer::WordPiece;

namespace {

using Model = std::variant<Bpe, Spm, WordPiece, Unigram>;

Result<Model> load_model(const gguf::Metadata& metadata, const Vocab& vocab) {
  switch (vocab.kind) {
    case VocabKind::bpe: {
      TRY_ASSIGN(Bpe bpe, Bpe::from_metadata(metadata, vocab));
      return Result<Model>{std::move(bpe)};
    }
    case VocabKind::spm: {
      TRY_ASSIGN(Spm spm, Spm::from_metadata(metadata, vocab));
      return Result<Model>{std::move(spm)};
    }
    case VocabKind::unigram: {
      TRY_ASSIGN(Unigram unigram, Unigram::from_metadata(metadata, vocab));
      return Result<Model>{std::move(unigram)};
    }
    case VocabKind::wordpiece: break;
  }
  TRY_ASSIGN(WordPiece wordpiece, WordPiece::from_metadata(metadata, vocab));
  return Result<Model>{std::move(wordpiece)};
}

// Where each span of a joined text ends, asked from left to right.
class SpanBorders {
 public:
  void append(size_t n_bytes, EncodeMode mode) {
    borders_.push_back({(borders_.empty() ? 0 : borders_.back().end) + n_bytes, mode});
  }

  // Whether a token may stand at [pos, pos + len). REQUIRES: pos does not decrease from call to call.
  bool permit(AddedTokens::Trust trust, size_t pos, size_t len) {
    while (borders_[first_].end <= pos) ++first_;
    for (size_t i = first_;; ++i) {
      const EncodeMode mode = borders_[i].mode;
      if (trust == AddedTokens::Trust::template_ && mode != EncodeMode::special) return false;
      if (trust == AddedTokens::Trust::text && mode == EncodeMode::plain) return false;
      if (borders_[i].end >= pos + len) return true;
    }
  }

 private:
  struct Border {
    size_t end;
    EncodeMode mode;
  };
  std::vector<Border> borders_;
  size_t first_ = 0;
};

}  // namespace

struct Tokenizer::Impl {
  Vocab vocab;
  AddedTokens added;
  Model model;
};

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<Tokenizer> Tokenizer::from_metadata(const gguf::Metadata& metadata) {
  TRY_ASSIGN(Vocab vocab, Vocab::from_metadata(metadata));
  TRY_ASSIGN(AddedTokens added, AddedTokens::from_vocab(vocab));
  TRY_ASSIGN(Model model, load_model(metadata, vocab));
  return Tokenizer(std::make_shared<const Impl>(Impl{std::move(vocab), std::move(added), std::move(model)}));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeMode mode, bool add_special) const {
  const TextSpan span{text, mode};
  return encode_spans({&span, 1}, add_special);
}

std::vector<int32_t> Tokenizer::encode_spans(std::span<const TextSpan> spans, bool add_special) const {
  std::string joined;
  SpanBorders borders;
  for (const TextSpan& span : spans) {
    if (span.text.empty()) continue;
    borders.append(span.text.size(), span.mode);
    if (spans.size() > 1) joined += span.text;
  }
  const std::string_view text = spans.size() == 1 ? spans[0].text : std::string_view(joined);

  std::vector<int32_t> ids;
  const auto encode_stretch = [&](size_t from, size_t to) {
    if (from == to) return;
    std::visit([&](const auto& model) { model.encode(text.substr(from, to - from), ids); }, impl_->model);
  };
  size_t from = 0;
  for (size_t pos = 0; pos < text.size();) {
    if (!impl_->added.may_start(text[pos])) {
      ++pos;
      continue;
    }
    const AddedTokens::Match match = impl_->added.longest_at(
        text, pos, [&](AddedTokens::Trust trust, size_t len) { return borders.permit(trust, pos, len); });
    if (match.id < 0) {
      ++pos;
      continue;
    }
    encode_stretch(from, pos);
    ids.push_back(match.id);
    from = pos += match.len;
  }
  encode_stretch(from, text.size());

  if (add_special) {
    const SpecialIds& special = impl_->vocab.ids;
    const bool is_wordpiece = impl_->vocab.kind == VocabKind::wordpiece;
    const int32_t begin = is_wordpiece ? special.cls : special.bos;
    const int32_t end = is_wordpiece ? special.sep : special.eos;
    if (adds_bos() && begin >= 0 && (ids.empty() || ids.front() != begin)) ids.insert(ids.begin(), begin);
    if (adds_eos() && end >= 0) ids.push_back(end);
  }
  return ids;
}

Tokenizer::Pair Tokenizer::encode_pair(std::string_view first, std::string_view second) const {
  const SpecialIds& special = impl_->vocab.ids;
  const bool is_wordpiece = impl_->vocab.kind == VocabKind::wordpiece;
  const int32_t begin = is_wordpiece ? special.cls : special.bos;
  const int32_t end = is_wordpiece ? special.sep : special.eos;
  Pair pair;
  const auto put = [&](int32_t id) {
    if (id >= 0) pair.ids.push_back(id);
  };
  const auto put_text = [&](std::string_view text) {
    const std::vector<int32_t> ids = encode(text, EncodeMode::plain, false);
    pair.ids.insert(pair.ids.end(), ids.begin(), ids.end());
  };
  put(begin);
  put_text(first);
  put(end);
  if (!is_wordpiece) put(end);
  pair.second_at = static_cast<int32_t>(pair.ids.size());
  put_text(second);
  put(end);
  return pair;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool include_special) const {
  StreamDecoder decoder(*this, include_special);
  std::string text;
  for (const int32_t id : ids) text += decoder.push(id);
  text += decoder.finish();
  return text;
}

std::string_view Tokenizer::token_text(int32_t id) const {
  return impl_->vocab.contains(id) ? impl_->vocab.text(id) : std::string_view();
}

int32_t Tokenizer::find_token(std::string_view text) const {
  if (const int32_t id = impl_->added.find(text); id >= 0) return id;
  return std::visit([&](const auto& model) { return model.find(text); }, impl_->model);
}

VocabKind Tokenizer::kind() const { return impl_->vocab.kind; }
const std::string& Tokenizer::pre() const { return impl_->vocab.pre; }
int32_t Tokenizer::n_vocab() const { return impl_->vocab.size(); }
TokenType Tokenizer::token_type(int32_t id) const {
  return impl_->vocab.contains(id) ? impl_->vocab.types[id] : TokenType::unused;
}
bool Tokenizer::is_control(int32_t id) const { return token_type(id) == TokenType::control; }
bool Tokenizer::is_eog(int32_t id) const { return impl_->vocab.contains(id) && impl_->vocab.eog[id]; }
const SpecialIds& Tokenizer::special_ids() const { return impl_->vocab.ids; }
bool Tokenizer::adds_bos() const { return impl_->vocab.add_bos; }
bool Tokenizer::adds_eos() const { return impl_->vocab.add_eos; }
const std::vector<int32_t>& Tokenizer::eog_ids() const { return impl_->vocab.eog_ids; }
const std::vector<int32_t>& Tokenizer::unused_ids() const { return impl_->vocab.unused_ids; }
const std::vector<int32_t>& Tokenizer::suppress_ids() const { return impl_->vocab.suppress_ids; }
const std::vector<std::string>& Tokenizer::warnings() const { return impl_->vocab.warnings; }

StreamDecoder::StreamDecoder(Tokenizer tokenizer, bool include_special, bool continues_text)
    : tokenizer_(std::move(tokenizer)), include_special_(include_special) {
  const Vocab& vocab = tokenizer_.impl_->vocab;
  const bool marks_start =
      vocab.kind == VocabKind::wordpiece || (vocab.kind != VocabKind::bpe && vocab.add_space_prefix);
  drop_space_ = marks_start && !continues_text;
}

std::string StreamDecoder::push(int32_t id) {
  std::string out;
  const Vocab& vocab = tokenizer_.impl_->vocab;
  if (!vocab.contains(id)) return out;
  const TokenType type = vocab.types[id];
  if (!include_special_ && (type == TokenType::control || type == TokenType::unknown)) return out;
  std::string_view text = vocab.text(id);
  if (drop_space_ && type == TokenType::normal && text.starts_with(' ')) text.remove_prefix(1);
  drop_space_ = false;
  utf8_.push(text, out);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  utf8_.finish(out);
  return out;
}

}  // namespace chimere
