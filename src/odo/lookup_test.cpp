// lookup_test.cpp  What of collections is told to a model, and what the step of the run says of how it was found.
#include "odo/lookup.h"

#include <gtest/gtest.h>

#include "base/scratch_for_test.h"
#include "odo/own_tools.h"
#include "text/json.h"

namespace chimere::odo {
namespace {

using State = StepReport::State;

// Texts about animals are near each other, whatever their words.
retrieval::TextEmbedder animal_embedder() {
  retrieval::TextEmbedder embedder;
  embedder.fingerprint = 7;
  embedder.dimensions = 2;
  embedder.name = "animals";
  embedder.embed = [](std::span<const std::string> texts, auto) {
    std::vector<std::vector<float>> vectors;
    for (const std::string& text : texts) {
      const bool is_animal = text.find("otter") != std::string::npos || text.find("swim") != std::string::npos;
      vectors.push_back(is_animal ? std::vector<float>{1, 0} : std::vector<float>{0, 1});
    }
    return Result<std::vector<std::vector<float>>>{std::move(vectors)};
  };
  return embedder;
}

class LookupTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = retrieval::Collections::open((fixture::scratch_folder() / "collections.db").string());
    ASSERT_TRUE(opened) << opened.error().message;
    collections_ = std::move(*opened);
    collections_->use(animal_embedder());
    add("otters.md", "An otter keeps its stone below its arm.");
    add("tax.md", "Taxes are due in May.");
  }
  void add(const std::string& name, const std::string& text) {
    const auto added = collections_->add({"desk", "notes", name, text, 0, {}});
    ASSERT_TRUE(added) << added.error().message;
  }

  // The step of a run that asks this.
  StepReport look(const std::string& question) {
    found_.clear();
    RunTeller teller(std::make_shared<RunLink>(std::function<void()>()), {});
    tools::ToolContext context;
    context.key = "desk";
    Shelves shelves;
    shelves.collections = collections_.get();
    retrieve(shelves, {"notes"}, question, {}, context, teller, found_);
    return teller.report().steps.front();
  }

  std::unique_ptr<retrieval::Collections> collections_;
  std::vector<FoundText> found_;
};

TEST_F(LookupTest, ATextThatIsNearIsToldWithoutAWordInCommon) {
  const StepReport step = look("Which creatures swim?");
  EXPECT_EQ(step.state, State::done);
  ASSERT_EQ(found_.size(), 1u) << "what is merely the second nearest is not told";
  EXPECT_EQ(found_[0].document, "otters.md");
  const auto detail = parse_json(step.detail);
  ASSERT_TRUE(detail) << step.detail;
  EXPECT_EQ((*detail)["stages"][0]["stage"], "words");
  EXPECT_EQ((*detail)["stages"][1]["stage"], "vectors");
  EXPECT_EQ((*detail)["stages"][1]["n"], 1);
  look("When are taxes due?");
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].document, "tax.md");
}

TEST_F(LookupTest, APartThatFailsIsNamed) {
  retrieval::TextEmbedder broken = animal_embedder();
  broken.embed = [](auto, auto) { return Error{Code::exhausted, "too busy"}; };
  collections_->use(broken);
  const StepReport step = look("When are taxes due?");
  EXPECT_EQ(step.state, State::done);
  EXPECT_EQ(step.about, "1 text; vectors left out: too busy");
  EXPECT_EQ(found_.size(), 1u);
  const auto detail = parse_json(step.detail);
  ASSERT_TRUE(detail);
  EXPECT_EQ((*detail)["stages"][1]["note"], "too busy");
  // That there is none is no failure.
  collections_->use(retrieval::TextEmbedder());
  EXPECT_EQ(look("When are taxes due?").about, "1 text");
}

TEST_F(LookupTest, TheToolFindsTheSame) {
  const auto tool = make_retrieve(*collections_);
  tools::ToolContext context;
  context.key = "desk";
  const tools::ToolResult near = tool->run(R"({"query": "creatures that swim"})", context);
  EXPECT_NE(near.text.find("stone below its arm"), std::string::npos) << near.text;
  EXPECT_EQ(near.text.find("Taxes"), std::string::npos) << near.text;
  EXPECT_TRUE(near.is_untrusted);
  context.key = "phone";
  EXPECT_EQ(tool->run(R"({"query": "creatures that swim"})", context).text, "Nothing was found.");
}

// Of a run: what was looked up before, then what tools found, each number once.
TEST(SourcesTest, ANumberMeansOneText) {
  Sources sources(
      {{"Beans", "", "beans.md", "line 2", "b", "garden"}, {"Boats", "https://boats.example", "", "", "c"}});
  const size_t first = sources.reserve(2);
  EXPECT_EQ(first, 3u);
  EXPECT_EQ(sources.reserve(1), 3 + 2 * kToldTexts);
  sources.put(first + kToldTexts, {{"Tax", "", "tax.md", "", "t", "notes"}});
  const auto cited = sources.cited_in("Aïe [1], [7] and [2][3], [99], [], [1");
  ASSERT_EQ(cited.size(), 3u) << "what has no text is no citation";
  EXPECT_EQ(cited[0].begin, 4u) << "in characters";
  EXPECT_EQ(cited[0].end, 7u);
  EXPECT_EQ(cited[0].title, "Beans, line 2");
  EXPECT_EQ(cited[0].document, "beans.md");
  EXPECT_EQ(cited[1].document, "tax.md");
  EXPECT_EQ(cited[2].url, "https://boats.example");
}

}  // namespace
}  // namespace chimere::odo
