// search_bench.cpp  What a search in a collection costs, and how fast documents are stored.
//
//   search_bench TEXT DATABASE [CHUNKS [DIMENSIONS [WINDOWS [MATCHER]]]]
//
// TEXT: a file of plain text, cut into documents of about 100 chunks until there are CHUNKS of them (100,000). Vectors are
// random directions, made without a model: what is measured is the store and the search. With WINDOWS each chunk has so many
// vectors, and scores are added, as chimere-embed's file says; with MATCHER the best are read again. Questions are six words in a row
// out of the text, and eight words that stand far apart, small ones among them. Medians and the slowest of twenty, of
// processor time, which a busy machine changes least: a search is one thread. DATABASE is made anew.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "retrieval/collections.h"
#include "retrieval/matcher.h"

namespace {

using namespace chimere;
using namespace chimere::retrieval;

constexpr size_t kDocumentBytes = 110'000;
constexpr int kQuestions = 100;

double ms_since(std::clock_t start) { return static_cast<double>(std::clock() - start) * 1e3 / CLOCKS_PER_SEC; }

constexpr double kScoreWeight = 8;  // with windows: that of chimere-embed's file

std::vector<float> direction(const std::string& text, int dimensions, uint64_t seed = 0) {
  std::vector<float> vector(static_cast<size_t>(dimensions));
  uint64_t bits = hash64(text, seed);
  double squares = 0;
  for (float& x : vector) {
    bits = hash_mix(bits + 1);
    x = static_cast<float>(static_cast<double>(bits >> 11) / 9007199254740992.0 - 0.5);
    squares += double{x} * x;
  }
  for (float& x : vector) x = static_cast<float>(x / std::sqrt(squares));
  return vector;
}

TextEmbedder random_embedder(int dimensions, int n_windows) {
  const auto by_windows = [dimensions](int n) {
    return [dimensions, n](std::span<const std::string> texts, auto) {
      std::vector<std::vector<float>> all;
      for (const std::string& text : texts) {
        std::vector<float>& vectors = all.emplace_back();
        for (int i = 0; i < n; ++i) {
          const std::vector<float> one = direction(text, dimensions, static_cast<uint64_t>(i));
          vectors.insert(vectors.end(), one.begin(), one.end());
        }
      }
      return Result<std::vector<std::vector<float>>>{std::move(all)};
    };
  };
  TextEmbedder embedder{1, dimensions, "random", by_windows(1), 1};
  if (n_windows > 0) {
    embedder.embed_windows = by_windows(n_windows);
    embedder.score_weight = kScoreWeight;
  }
  return embedder;
}

std::string words_at(const std::string& text, size_t at, int n, size_t step) {
  std::string words;
  for (int i = 0; i < n; ++i) {
    at = text.find_first_of(" \n", at % (text.size() - 1000)) + 1;
    words += text.substr(at, text.find_first_of(" \n", at) - at) + " ";
    at += step;
  }
  return words;
}

void print_row(const char* what, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf("| %s | %.1f | %.1f | %.1f |\n", what, times[times.size() / 2], times[times.size() * 95 / 100],
              times.back());
}

int fail(const Error& error) {
  std::fprintf(stderr, "search_bench: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3)
    return fail({Code::invalid_argument, "expected TEXT DATABASE [CHUNKS [DIMENSIONS [WINDOWS [MATCHER]]]]"});
  std::ifstream in(argv[1], std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const uint64_t n_chunks = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 100'000;
  const int dimensions = argc > 4 ? std::atoi(argv[4]) : 384;
  const int n_windows = argc > 5 ? std::atoi(argv[5]) : 0;
  if (text.size() < 2 * kDocumentBytes) return fail({Code::invalid_argument, "expected a longer text"});
  for (const char* ending : {"", "-wal", "-shm"}) std::filesystem::remove(std::string(argv[2]) + ending);
  CollectionLimits limits;
  limits.chunks = 10 * n_chunks;
  limits.bytes = uint64_t{1} << 40;
  auto opened = Collections::open(argv[2], limits);
  if (!opened) return fail(opened.error());
  Collections& collections = **opened;
  collections.use(random_embedder(dimensions, n_windows));
  if (argc > 6) {
    auto matcher = Matcher::open(argv[6]);
    if (!matcher) return fail(matcher.error());
    collections.use(std::make_shared<const Matcher>(std::move(*matcher)));
  }
  auto start = std::clock();
  uint64_t done = 0, bytes = 0;
  for (size_t i = 0; done < n_chunks; ++i) {
    const size_t at = i * kDocumentBytes % (text.size() - kDocumentBytes);
    auto added =
        collections.add({"", "all", "d" + std::to_string(i), std::string_view(text).substr(at, kDocumentBytes), 0, {}});
    if (!added) return fail(added.error());
    done += added->document.chunks;
    bytes += added->document.bytes;
  }
  const double stored_s = ms_since(start) / 1000;
  std::printf(
      "%llu chunks, %.1f MB of text, %d dimensions: stored in %.1f s, %.0f chunks/s, %.1f MB/s; file of %.0f MB\n\n",
      static_cast<unsigned long long>(done), static_cast<double>(bytes) / 1e6, dimensions, stored_s,
      static_cast<double>(done) / stored_s, static_cast<double>(bytes) / 1e6 / stored_s,
      static_cast<double>(std::filesystem::file_size(argv[2])) / 1e6);
  std::printf("| search | median, ms | of twenty the slowest, ms | slowest of all, ms |\n|---|---|---|---|\n");
  for (const bool is_spread : {false, true}) {
    for (const SearchMode mode : {SearchMode::words, SearchMode::vectors, SearchMode::hybrid}) {
      std::vector<double> times;
      for (int i = 0; i <= kQuestions; ++i) {
        SearchCall call;
        const size_t at = hash_mix(static_cast<uint64_t>(i) + 1) % text.size();
        call.query = is_spread ? words_at(text, at, 8, 1'000'003) : words_at(text, at, 6, 0);
        call.mode = mode;
        start = std::clock();
        const auto hits = collections.search(call);
        const double ms = ms_since(start);
        if (!hits) return fail(hits.error());
        const bool loads = i == 0 && mode == SearchMode::vectors && !is_spread;
        if (loads) std::printf("| the first by vectors, which reads them | %.0f | | |\n", ms);
        if (i > 0) times.push_back(ms);
      }
      print_row((std::string(search_mode_name(mode)) + (is_spread ? ", words far apart" : ", words in a row")).c_str(),
                times);
    }
  }
  start = std::clock();
  auto changed = collections.add({"", "all", "d0", "A small change.", 0, {}});
  if (!changed) return fail(changed.error());
  const double change_ms = ms_since(start);
  SearchCall call;
  call.query = "a small change";
  start = std::clock();
  if (const auto hits = collections.search(call); !hits) return fail(hits.error());
  std::printf("\na document of 100 chunks replaced in %.0f ms; the search after it took %.0f ms\n", change_ms,
              ms_since(start));
  return 0;
}
