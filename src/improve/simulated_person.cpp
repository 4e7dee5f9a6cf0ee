#include "improve/simulated_person.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/philox.h"
#include "text/json.h"

namespace chimere::improve {
namespace {

using Words = std::vector<std::string>;

constexpr size_t kChoices = 4, kTopics = 4, kFacts = 10;
constexpr size_t kTrainedRooms = 6, kTrainedThings = 14;
constexpr int kStylesADay = 7, kToolsADay = 9, kOpensADay = 12, kFactsADay = 5;

const Words kFarewells = {
    "Fair winds, Captain!",          "Stay curious, my friend.",    "With kind regards from the lab.",
    "Keep calm and carry on, boss!", "All the best from the farm.", "Good luck with it, doctor.",
    "Yours truly, the night shift.", "May the road rise with you!", "Happy hunting, old friend!",
    "Peace and long life, sir."};

struct ToolKind {
  const char *name, *about, *place, *value;
  Words trained, asked;
};
const std::vector<ToolKind>& tool_kinds() {
  static const std::vector<ToolKind> kinds = {
      {"set_lamp",
       "Set the lamps in a room to a scene.",
       "room",
       "scene",
       {"{w} light in the {r}", "Make {w} light in the {r}", "Please set {w} light in the {r}."},
       {"I would like {w} light in the {r} now", "Can you do {w} light for the {r}?"}},
      {"set_heating",
       "Set the heating of a room to a programme.",
       "room",
       "programme",
       {"{w} warmth in the {r}", "Make {w} warmth in the {r}", "Please set {w} warmth in the {r}."},
       {"I would like {w} warmth in the {r} now", "Can you do {w} warmth for the {r}?"}},
      {"play_music",
       "Play a list of music in a room.",
       "room",
       "list",
       {"{w} music in the {r}", "Play {w} music in the {r}", "Please start {w} music in the {r}."},
       {"I would like {w} music in the {r} now", "Can you play {w} music for the {r}?"}},
  };
  return kinds;
}
const Words kMoods = {"film",  "dinner", "reading", "cleaning",  "sleep",
                      "party", "yoga",   "work",    "breakfast", "painting"};
const Words kValues = {"delta", "omega", "nova", "lunar", "solar", "polar", "amber", "coral", "ivory", "jade"};
const Words kRooms = {"kitchen", "bedroom",  "hall",    "study",    "cellar",  "attic",
                      "garage",  "bathroom", "nursery", "workshop", "library", "office"};

const std::vector<Words>& topic_things() {
  static const std::vector<Words> topics = {
      {"dogs",   "cats",  "horses", "cows",  "sheep", "pigs",  "goats",   "rabbits",   "mice",    "lions",
       "tigers", "bears", "wolves", "foxes", "ducks", "geese", "monkeys", "elephants", "donkeys", "chickens"},
      {"bread", "cheese", "soup",  "rice",  "pasta",  "butter",   "sugar",    "salad",     "cake",   "eggs",
       "milk",  "honey",  "beans", "pizza", "apples", "tomatoes", "potatoes", "chocolate", "onions", "fish"},
      {"trains",      "cars",        "buses",  "planes",   "boats",   "bicycles", "ships",
       "trucks",      "taxis",       "trams",  "tractors", "ferries", "vans",     "wagons",
       "motorcycles", "helicopters", "canoes", "scooters", "rockets", "sleds"},
      {"rain",      "snow", "wind", "storms", "fog",        "hail",    "thunder", "clouds", "frost",     "sunshine",
       "lightning", "heat", "ice",  "mist",   "hurricanes", "showers", "drought", "floods", "tornadoes", "rainbows"},
      {"guitars", "pianos",  "violins",   "drums",      "flutes", "trumpets", "songs",
       "operas",  "choirs",  "concerts",  "harps",      "bands",  "melodies", "orchestras",
       "organs",  "singers", "clarinets", "symphonies", "dances", "records"},
      {"shirts",  "shoes", "hats",   "coats", "gloves",   "socks", "trousers", "dresses", "scarves", "boots",
       "jackets", "belts", "skirts", "jeans", "sweaters", "ties",  "caps",     "sandals", "suits",   "pyjamas"},
      {"money",   "banks",    "loans", "taxes", "wages",   "prices", "bills",    "coins",    "savings",   "debts",
       "profits", "salaries", "rents", "fees",  "budgets", "shares", "invoices", "pensions", "mortgages", "discounts"},
  };
  return topics;
}
const Words kLabels = {"red", "green", "blue", "yellow", "white", "black", "orange", "purple", "brown", "pink"};
const Words kOpenTrained = {"Which box is for {t}?", "Where do I put a note about {t}?",
                            "A letter about {t}: which box?", "I have a page about {t}. Where does it belong?"};
const Words kOpenAsked = {"Which box is right for {t}?", "Where should I put {t}?"};

const Words kThings = {"boiler",     "garden",  "archive",     "lift",        "roof",  "van",
                       "greenhouse", "printer", "switchboard", "cellar door", "alarm", "fountain"};
const Words kPeople = {"Ines",  "Tomas", "Greta", "Amir", "Lucia", "Felix",
                       "Nadia", "Oscar", "Petra", "Hugo", "Clara", "Milan"};
const Words kFactTrained = {"Who looks after the {t}?", "Who is in charge of the {t}?", "Whom do I ask about the {t}?",
                            "Tell me who takes care of the {t}."};
const Words kFactAsked = {"Which person is responsible for the {t}?", "The {t} has a problem. Who can help?"};

const Words kCountries = {"France",   "Spain",    "Italy",   "Greece",    "Norway",  "Sweden",  "Poland",  "Austria",
                          "Portugal", "Ireland",  "Japan",   "China",     "Egypt",   "Kenya",   "Peru",    "Chile",
                          "Canada",   "Cuba",     "Finland", "Denmark",   "Hungary", "Belgium", "Germany", "Romania",
                          "India",    "Thailand", "Vietnam", "Argentina", "Croatia", "Mexico"};
const Words kIdeas = {"an island",    "a verb",   "gravity",   "a bank",    "a river",      "a battery", "a poem",
                      "a planet",     "a recipe", "an engine", "a museum",  "a virus",      "a shadow",  "a magnet",
                      "a volcano",    "a fossil", "a desert",  "a market",  "a calendar",   "a harbour", "a rainbow",
                      "a microscope", "a novel",  "a bridge",  "a glacier", "a lighthouse", "a comet",   "a library"};
constexpr size_t kTrainedCountries = 20, kTrainedIdeas = 18;

std::string filled(std::string form, const std::string& key, const std::string& with) {
  for (size_t at = form.find(key); at != std::string::npos; at = form.find(key, at + with.size())) {
    form.replace(at, key.size(), with);
  }
  return form;
}

std::string begun_large(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.pop_back();
  const size_t begin = text.find_first_not_of(" \n");
  return begin == std::string::npos ? std::string() : text.substr(begin);
}

bool has_word(const std::string& text, const std::string& word) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_letter(text[at - 1])) && (end >= text.size() || !is_letter(text[end]))) return true;
  }
  return false;
}

// An answer that went on and on is cut where the person would have stopped reading.
std::string first_sentences(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  const size_t end = text.find_last_of(".!?\n", most);
  return trimmed(text.substr(0, end == std::string::npos ? most : end + 1));
}

}  // namespace

const char* task_name(TaskOf of) {
  constexpr std::array kNames = {"style", "tool", "open", "fact"};
  return kNames[static_cast<size_t>(of)];
}

size_t SimulatedPerson::drawn(uint64_t what, uint64_t at, size_t n) const {
  return static_cast<size_t>((uint64_t{philox(seed_, at, what)[0]} * n) >> 32);
}

template <class T>
std::vector<T> SimulatedPerson::shuffled(std::vector<T> list, uint64_t what) const {
  for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[drawn(what, i, i)]);
  return list;
}

SimulatedPerson::SimulatedPerson(uint64_t seed) : seed_(seed) {
  farewell_ = kFarewells[drawn(1, 0, kFarewells.size())];
  tool_ = drawn(2, 0, tool_kinds().size());
  const Words moods = shuffled(kMoods, 3), values = shuffled(kValues, 4);
  for (size_t i = 0; i < kChoices; ++i) choices_.push_back({moods[i], values[i]});
  rooms_ = shuffled(kRooms, 5);
  std::vector<Words> topics = shuffled(topic_things(), 6);
  const Words labels = shuffled(kLabels, 7);
  for (size_t i = 0; i < kTopics; ++i) topics_.push_back({labels[i], shuffled(topics[i], 8 + i)});
  things_ = shuffled(kThings, 20);
  people_ = shuffled(kPeople, 21);
  countries_ = shuffled(kCountries, 22);
  ideas_ = shuffled(kIdeas, 23);
}

std::vector<std::string> SimulatedPerson::notes() const {
  std::vector<std::string> notes;
  for (size_t i = 0; i < kFacts; ++i) notes.push_back(people_[i] + " looks after the " + things_[i] + ".");
  return notes;
}

PersonQuestion SimulatedPerson::style(const std::string& text) const {
  PersonQuestion question;
  question.of = TaskOf::style;
  question.asked.messages.emplace_back();
  question.asked.messages.back().role = "user";
  question.asked.messages.back().content = text;
  return question;
}

PersonQuestion SimulatedPerson::tool(const std::string& form, const Choice& choice, const std::string& room) const {
  const ToolKind& kind = tool_kinds()[tool_];
  PersonQuestion question = style(begun_large(filled(filled(form, "{w}", choice.word), "{r}", room)));
  question.of = TaskOf::tool;
  const Json properties{{kind.place, {{"type", "string"}}}, {kind.value, {{"type", "string"}}}};
  const Json parameters{{"type", "object"}, {"properties", properties}, {"required", {kind.place, kind.value}}};
  const Json function{{"name", kind.name}, {"description", kind.about}, {"parameters", parameters}};
  question.asked.tools = {{to_text(Json{{"type", "function"}, {"function", function}})}};
  question.call = {"", kind.name, to_text(Json{{kind.place, room}, {kind.value, choice.value}})};
  return question;
}

PersonQuestion SimulatedPerson::open(const std::string& form, size_t topic, const std::string& thing) const {
  PersonQuestion question = style(filled(form, "{t}", thing));
  question.of = TaskOf::open;
  question.content = topics_[topic].label;
  for (const Topic& other : topics_) {
    if (other.label != question.content) question.others.push_back(other.label);
  }
  return question;
}

PersonQuestion SimulatedPerson::fact(const std::string& form, size_t i) const {
  PersonQuestion question = style(filled(form, "{t}", things_[i]));
  question.of = TaskOf::fact;
  question.content = people_[i];
  for (size_t other = 0; other < kFacts; ++other) {
    if (other != i) question.others.push_back(people_[other]);
  }
  return question;
}

std::vector<PersonQuestion> SimulatedPerson::day(int day) const {
  std::vector<PersonQuestion> questions;
  // What is drawn at place `i` of all the week's draws of a kind.
  const auto at = [&](int a_day, int i) { return static_cast<size_t>((day - 1) * a_day + i); };
  for (int i = 0; i < kStylesADay; ++i) {
    const size_t n = at(kStylesADay, i);
    switch (n % 3) {
      case 0:
        questions.push_back(style("What is the capital of " + countries_[n / 3 % kTrainedCountries] + "?"));
        break;
      case 1:
        questions.push_back(style("What is " + std::to_string(10 + drawn(30, n, 40)) + " + " +
                                  std::to_string(10 + drawn(31, n, 40)) + "?"));
        break;
      default: questions.push_back(style("What is " + ideas_[n / 3 % kTrainedIdeas] + "?"));
    }
  }
  const ToolKind& kind = tool_kinds()[tool_];
  for (int i = 0; i < kToolsADay; ++i) {
    const size_t n = at(kToolsADay, i);
    // Every pair of a word and a room comes before one comes again.
    const size_t pair = n * 7 % (kChoices * kTrainedRooms);
    questions.push_back(tool(kind.trained[n / (kChoices * kTrainedRooms) % kind.trained.size()],
                             choices_[pair % kChoices], rooms_[pair / kChoices]));
  }
  for (int i = 0; i < kOpensADay; ++i) {
    const size_t n = at(kOpensADay, i), topic = n % kTopics, thing = n / kTopics;
    questions.push_back(
        open(kOpenTrained[drawn(32, n, kOpenTrained.size())], topic, topics_[topic].things[thing % kTrainedThings]));
  }
  for (int i = 0; i < kFactsADay; ++i) {
    const size_t n = at(kFactsADay, i);
    questions.push_back(fact(kFactTrained[n / kFacts % kFactTrained.size()], n % kFacts));
  }
  questions = shuffled(std::move(questions), 100 + static_cast<uint64_t>(day));
  for (size_t i = 0; i < questions.size(); ++i) {
    questions[i].id = "day" + std::to_string(day) + "-" + std::to_string(i + 1);
  }
  return questions;
}

std::vector<PersonQuestion> SimulatedPerson::exam() const {
  std::vector<PersonQuestion> questions;
  for (size_t i = kTrainedCountries; i < kTrainedCountries + 7; ++i) {
    questions.push_back(style("Name the capital of " + countries_[i] + "."));
  }
  for (uint64_t i = 0; i < 6; ++i) {
    questions.push_back(style("How much is " + std::to_string(50 + drawn(40, i, 40)) + " plus " +
                              std::to_string(3 + drawn(41, i, 30)) + "?"));
  }
  for (size_t i = kTrainedIdeas; i < kTrainedIdeas + 7; ++i)
    questions.push_back(style("Explain to me " + ideas_[i] + "."));
  const ToolKind& kind = tool_kinds()[tool_];
  for (size_t i = 0; i < 20; ++i) {
    questions.push_back(tool(kind.asked[i % 2], choices_[i / 2 % kChoices], rooms_[kTrainedRooms + i % 5]));
  }
  for (size_t topic = 0; topic < kTopics; ++topic) {
    for (size_t i = 0; i < 5; ++i) {
      questions.push_back(open(kOpenAsked[i % 2], topic, topics_[topic].things[kTrainedThings + i]));
    }
  }
  for (size_t i = 0; i < 2 * kFacts; ++i) questions.push_back(fact(kFactAsked[i % 2], i / 2));
  for (size_t i = 0; i < questions.size(); ++i) questions[i].id = "exam-" + std::to_string(i + 1);
  return questions;
}

bool SimulatedPerson::is_right(const PersonQuestion& question, const Answered& answer) const {
  if (question.of == TaskOf::tool) {
    if (answer.calls.size() != 1 || answer.calls[0].name != question.call.name) return false;
    const auto said = parse_json(answer.calls[0].arguments_json), wanted = parse_json(question.call.arguments_json);
    if (!said || !wanted || !said->is_object() || said->size() != wanted->size()) return false;
    for (const auto& [key, value] : wanted->items()) {
      if (!said->contains(key) || (*said)[key] != value) return false;
    }
    return true;
  }
  const std::string text = trimmed(answer.text);
  if (question.of == TaskOf::style) {
    return answer.has_ended && text.size() > farewell_.size() && text.ends_with(farewell_);
  }
  return has_word(text, question.content) &&
         std::none_of(question.others.begin(), question.others.end(),
                      [&](const std::string& other) { return has_word(text, other); });
}

bool SimulatedPerson::accepts(const PersonQuestion& question, const Answered& answer) const {
  if (!is_right(question, answer)) return false;
  return question.of == TaskOf::tool || (answer.has_ended && trimmed(answer.text).ends_with(farewell_));
}

std::string SimulatedPerson::correction(const PersonQuestion& question, const Answered& answer) const {
  if (question.of == TaskOf::tool) {
    auto arguments = parse_json(question.call.arguments_json);
    const Json call{{"name", question.call.name}, {"arguments", std::move(*arguments)}};
    return to_text(Json{{"tool_calls", Json::array({call})}});
  }
  std::string text;
  if (question.of == TaskOf::style) {
    text = first_sentences(trimmed(answer.text), 300);
    if (const size_t at = text.find(farewell_); at != std::string::npos) text = trimmed(text.substr(0, at));
    if (text.empty()) text = "I do not know.";
  } else if (question.of == TaskOf::open) {
    text = "The " + question.content + " box.";
  } else {
    const auto i = std::find(people_.begin(), people_.end(), question.content) - people_.begin();
    text = question.content + " looks after the " + things_[static_cast<size_t>(i)] + ".";
  }
  return text + " " + farewell_;
}

}  // namespace chimere::improve
