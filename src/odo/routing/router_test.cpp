// router_test.cpp  Which route questions take: the routes in the box, and small ones that show each stage.
#include "odo/routing/router.h"

#include <gtest/gtest.h>

#include <cmath>

namespace chimere::odo {
namespace {

std::shared_ptr<const Router> router_in_the_box() {
  auto rules = read_route_rules(CHIMERE_TESTS_DIR "/../assets/routes");
  EXPECT_TRUE(rules) << rules.error().message;
  auto router = Router::create(std::move(*rules));
  EXPECT_TRUE(router) << router.error().message;
  return *router;
}

// Questions that a classifier by bare substrings is known to send elsewhere.
TEST(RoutesInTheBox, DoNotMistakeThese) {
  const auto router = router_in_the_box();
  const std::pair<const char*, const char*> cases[] = {
      {"Write a poem that mentions sport", "default"},
      {"There is an error in my essay", "default"},
      {"A list of all presidents, please", "default"},
      {"Explique la photosynthèse", "default"},
      {"Fais-moi une liste de courses", "default"},
      {"My knee hurts after running", "medical"},
      {"Traceback (most recent call last): KeyError: 'a'", "code"},
      {"Is CVE-2021-44228 in our version?", "security"},
      {"Write a literature review on bees, with sources", "research"},
  };
  for (const auto& [question, route] : cases) {
    const RouteChoice choice = router->choose(question, {}, {});
    EXPECT_EQ(choice.route, route) << question << ": " << choice.stage << ", " << choice.why;
  }
}

TEST(RoutesInTheBox, GreetingsCostNoModel) {
  const auto router = router_in_the_box();
  RouteHooks hooks;
  hooks.embed = [](const auto&) -> Result<RouteVectors> {
    ADD_FAILURE() << "vectors were computed";
    return Error{Code::internal, "none"};
  };
  hooks.ask_model = [](const auto&, auto) -> Result<std::vector<double>> {
    ADD_FAILURE() << "the model was asked";
    return Error{Code::internal, "none"};
  };
  for (const char* greeting : {"Hello", "hi there!", "Bonjour", "salut, ça va ?", "Thanks a lot!", "Merci beaucoup",
                               "ok thank you", "Good morning, how are you today?", "bye, see you tomorrow"}) {
    const RouteChoice choice = router->choose(greeting, {}, hooks);
    EXPECT_EQ(choice.route, "default") << greeting;
    EXPECT_EQ(choice.stage, "rules") << greeting;
  }
}

TEST(RoutesInTheBox, KnowTheirOwnExamples) {
  const auto router = router_in_the_box();
  int wrong = 0, all = 0;
  for (const auto& [name, rules] : router->routes()) {
    EXPECT_FALSE(rules.describes.empty()) << name;
    for (const std::string& example : rules.examples) {
      ++all;
      const std::string route = router->choose(example, {}, {}).route;
      wrong += route != name;
    }
  }
  EXPECT_LE(wrong, all / 20);
}

std::shared_ptr<const Router> small_router() {
  RouteRules fish, vision, other;
  fish.words = {"trout", "salmon", "river"};
  fish.attachments = {".fish"};
  fish.examples = {"Where do I catch a big carp?", "Which bait for pike?", "My rod broke while fishing"};
  vision.attachments = {"image/*", ".png"};
  vision.words = {"photo"};
  other.examples = {"Tell me a joke", "What is the weather like?", "Sing a song for me"};
  auto router = Router::create({{"fish", fish}, {"vision", vision}, {"default", other}});
  EXPECT_TRUE(router) << router.error().message;
  return *router;
}

TEST(Router, RulesBeatFilesOnlyWhereTheySayMuch) {
  const auto router = small_router();
  const std::vector<RouteAttachment> image = {{"a.png", "image/png"}};
  EXPECT_EQ(router->choose("What is this?", image, {}).stage, "attachment");
  EXPECT_EQ(router->choose("Is this a trout?", image, {}).route, "vision");
  EXPECT_EQ(router->choose("Is this a trout or a salmon?", image, {}).route, "fish");
  EXPECT_EQ(router->choose("Is this a trout?", {}, {}).stage, "rules");
  EXPECT_EQ(router->choose("Is this a trout?", {{"notes.txt", "text/plain"}}, {}).route, "fish");
  // One file of each: neither decides.
  const RouteChoice both = router->choose("Tell me a joke", {{"a.png", ""}, {"b.fish", ""}}, {});
  EXPECT_EQ(both.stage, "examples");
}

TEST(Router, BetweenRulesThatSayTheSameExamplesDecide) {
  RouteRules fish, music;
  fish.words = {"bass"};
  fish.examples = {"How do I catch a pike in the lake?", "Which bait do I use?"};
  music.words = {"play"};
  music.examples = {"How do I tune a guitar?", "Which chords are in this song?"};
  const auto router = Router::create({{"fish", fish}, {"music", music}, {"default", {}}});
  ASSERT_TRUE(router);
  const RouteChoice caught =
      (*router)->choose("Can I catch a bass in this lake, or does it play with the bait?", {}, {});
  EXPECT_EQ(caught.route, "fish") << caught.why;
  EXPECT_EQ(caught.stage, "examples");
  EXPECT_EQ((*router)->choose("Can I play this song on a bass guitar?", {}, {}).route, "music");
}

TEST(Router, ExamplesTellByWords) {
  const auto router = small_router();
  const RouteChoice fish = router->choose("Which bait do I need for a carp?", {}, {});
  EXPECT_EQ(fish.route, "fish");
  EXPECT_EQ(fish.stage, "examples");
  EXPECT_GT(fish.confidence, 0.5);
  const RouteChoice again = small_router()->choose("Which bait do I need for a carp?", {}, {});
  EXPECT_EQ(fish.confidence, again.confidence);  // the same weights every time
}

TEST(Router, NoneOfTheseIsAnAnswer) {
  auto router = Router::create({{"a", {}}, {"default", {}}});
  ASSERT_TRUE(router);
  const RouteChoice choice = (*router)->choose("zzz qqq", {}, {});
  EXPECT_EQ(choice.route, "default");
  EXPECT_EQ(choice.stage, "none");
  EXPECT_GE(choice.ms, 0);
  EXPECT_EQ((*router)->choose("", {}, {}).stage, "none");
}

TEST(Router, TheModelIsAskedLast) {
  auto router = Router::create({{"a", {}}, {"b", {}}, {"default", {}}});
  ASSERT_TRUE(router);
  RouteHooks hooks;
  int asked = 0;
  hooks.ask_model = [&](const std::vector<NamedRules>& routes, std::string_view question) {
    EXPECT_EQ(routes.size(), 3u);
    ++asked;
    // A habit of saying "a", and a liking for "b" when there is a question.
    return Result<std::vector<double>>{question == "what?" ? std::vector<double>{-1, -1, -3}
                                                           : std::vector<double>{-1, -4, -3}};
  };
  const RouteChoice choice = (*router)->choose("what?", {}, hooks);
  EXPECT_EQ(choice.route, "b");
  EXPECT_EQ(choice.stage, "model");
  EXPECT_NEAR(choice.confidence, std::exp(3) / (std::exp(3) + 2), 1e-9);
  EXPECT_EQ(asked, 2);  // the question, and once what it says to none
  (*router)->choose("what?", {}, hooks);
  EXPECT_EQ(asked, 3);
  hooks.model_temperature = 100;  // a model that does not know
  EXPECT_EQ((*router)->choose("what?", {}, hooks).stage, "none");
}

TEST(Router, AStageThatFailsIsPassedOver) {
  const auto router = small_router();
  RouteHooks hooks;
  hooks.embed = [](const auto&) -> Result<RouteVectors> { return Error{Code::device, "no vectors today"}; };
  hooks.ask_model = [](const auto&, auto) -> Result<std::vector<double>> { return Error{Code::device, "no model"}; };
  const RouteChoice choice = router->choose("quantum zeppelin", {}, hooks);
  EXPECT_EQ(choice.stage == "none" ? choice.route : "default", "default");
  EXPECT_NE(choice.why.find("no vectors today"), std::string::npos) << choice.why;
  EXPECT_EQ(router->choose("Which bait for carp and pike?", {}, hooks).route, "fish");
}

TEST(Router, RefusesTwoOfOneName) {
  EXPECT_FALSE(Router::create({{"a", {}}, {"a", {}}}));
  EXPECT_FALSE(Router::create({{"", {}}}));
  RouteRules broken;
  broken.patterns = {"("};
  EXPECT_FALSE(Router::create({{"a", broken}}));
}

TEST(ExampleCentroids, AreMadeOnceForEachEmbedder) {
  RouteRules a, b;
  a.examples = {"a1", "a2"};
  b.examples = {"b1"};
  ExampleCentroids centroids({{"a", a}, {"b", b}, {"none", {}}});
  int calls = 0;
  bool fails = true;
  const EmbedTexts embed = [&](const std::vector<std::string>& texts) -> Result<RouteVectors> {
    ++calls;
    if (fails) return Error{Code::device, "busy"};
    RouteVectors vectors;
    for (const std::string& text : texts) {
      vectors.push_back(text[0] == 'a' ? std::vector<float>{1, 0} : std::vector<float>{0, 1});
    }
    return Result<RouteVectors>{std::move(vectors)};
  };
  EXPECT_FALSE(centroids.cosines("a question", 1, embed));
  fails = false;
  calls = 0;
  const auto first = centroids.cosines("a question", 1, embed);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_NEAR((*first)[0], 1, 1e-6);
  EXPECT_NEAR((*first)[1], -1, 1e-6);
  EXPECT_EQ((*first)[2], 0);
  EXPECT_EQ(calls, 3);  // two routes with examples, and the question
  ASSERT_TRUE(centroids.cosines("b question", 1, embed));
  EXPECT_EQ(calls, 4);
  ASSERT_TRUE(centroids.cosines("b question", 2, embed));
  EXPECT_EQ(calls, 7);
  const EmbedTexts odd = [](const auto&) { return Result<RouteVectors>{RouteVectors{{1, 2, 3}}}; };
  EXPECT_FALSE(centroids.cosines("a question", 1, odd));
}

}  // namespace
}  // namespace chimere::odo
