#include "eval_tasks.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <random>
#include <set>
#include <utility>

namespace chimere::apps {
namespace {

std::string text_of(int64_t n) { return std::to_string(n); }

// Three numbers of three digits, two operations.
EvalTask made_sum(std::mt19937& random) {
  const auto number = [&] { return static_cast<int64_t>(100 + random() % 900); };
  const int64_t a = number(), b = number(), c = number();
  const std::string A = text_of(a), B = text_of(b), C = text_of(c);
  const auto task = [](std::string text, int64_t answer) {
    return EvalTask{TaskKind::sums, std::move(text), text_of(answer)};
  };
  switch (random() % 6) {
    case 0: return task("What is " + A + " + " + B + " * " + C + "?", a + b * c);
    case 1: return task("What is (" + A + " + " + B + ") * " + C + "?", (a + b) * c);
    case 2: return task("Calculate " + A + " * " + B + " - " + C + ".", a * b - c);
    case 3: return task("What is " + A + " plus " + B + " minus " + C + "?", a + b - c);
    case 4: return task("What is " + A + " times " + B + " plus " + C + "?", a * b + c);
    default: return task("Combien font " + A + " moins " + B + " plus " + C + " ?", a - b + c);
  }
}

EvalTask made_short_sum(std::mt19937& random) {
  const auto a = static_cast<int64_t>(10 + random() % 90), b = static_cast<int64_t>(10 + random() % 90);
  const int64_t large = std::max(a, b), small = std::min(a, b);
  const bool adds = random() % 2 == 0;
  return {TaskKind::short_sums, "What is " + text_of(large) + (adds ? " + " : " - ") + text_of(small) + "?",
          text_of(adds ? large + small : large - small)};
}

struct Scene {
  const char *start, *gain, *loss, *question;
};
// # is the number.
constexpr std::array<Scene, 5> kScenes = {{
    {"A gardener has # bulbs in a crate.", "A neighbour brings # bulbs.", "Mice eat # bulbs.",
     "How many bulbs are in the crate now?"},
    {"Mira has # buttons in a jar.", "Her aunt gives her # buttons.", "She sews # buttons on a coat.",
     "How many buttons does Mira have now?"},
    {"A shop has # candles.", "A delivery brings # candles.", "The shop sells # candles.",
     "How many candles does the shop have now?"},
    {"There are # visitors in a museum.", "Then # visitors come in.", "After that # visitors leave.",
     "How many visitors are in the museum now?"},
    {"Theo has # marbles.", "He wins # marbles.", "He loses # marbles.", "How many marbles does Theo have now?"},
}};

std::string with_number(std::string text, int64_t n) { return text.replace(text.find('#'), 1, text_of(n)); }

EvalTask made_problem(std::mt19937& random, bool is_long = false) {
  const Scene& scene = kScenes[random() % kScenes.size()];
  auto value = static_cast<int64_t>(is_long ? 100 + random() % 400 : 20 + random() % 60);
  std::string text = with_number(scene.start, value);
  const int n_changes = (is_long ? 4 : 2) + static_cast<int>(random() % 2);
  for (int i = 0; i < n_changes; ++i) {
    const bool gains = random() % 2 == 0 || value < 12;
    const auto change = static_cast<int64_t>(gains ? 5 + random() % (is_long ? 300 : 40)
                                                   : 2 + random() % static_cast<uint32_t>(value - 5));
    text += " " + with_number(gains ? scene.gain : scene.loss, change);
    value += gains ? change : -change;
  }
  return {is_long ? TaskKind::long_problems : TaskKind::problems, text + " " + scene.question, text_of(value)};
}

constexpr std::array kSyllables = {"bra", "ven", "kol", "ti",  "ros", "mel", "dun", "fa",
                                   "gri", "lo",  "sha", "pek", "nor", "zu",  "wim"};

// A word that is in no text: two or three syllables.
std::string made_name(std::mt19937& random) {
  std::string name;
  for (uint32_t n = 2 + random() % 2; n > 0; --n) name += kSyllables[random() % kSyllables.size()];
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

// One that is not in `taken`, which then has it.
std::string new_name(std::mt19937& random, std::set<std::string>& taken) {
  std::string name = made_name(random);
  while (!taken.insert(name).second) name += kSyllables[random() % kSyllables.size()];
  return name;
}

// One of five notes of the same kind has what is asked. `taken`: names that no thing of them may have; null: any.
EvalTask made_note(std::mt19937& random, std::set<std::string>* taken = nullptr) {
  constexpr uint32_t kNotes = 5;
  const auto number = [&] { return text_of(static_cast<int64_t>(1000000 + random() % 9000000)); };
  const uint32_t kind = random() % 4, asked = random() % kNotes;
  EvalTask task;
  task.kind = taken ? TaskKind::documents : TaskKind::notes;
  for (uint32_t i = 0; i < kNotes; ++i) {
    const std::string thing = taken ? new_name(random, *taken) : made_name(random),
                      person = made_name(random) + " " + made_name(random), code = number();
    std::string note, question, answer;
    switch (kind) {
      case 0:
        note = "The serial number of the " + thing + " pump is " + code + ".";
        question = "What is the serial number of the " + thing + " pump?";
        answer = code;
        break;
      case 1:
        note = "The director of the " + thing + " museum is " + person + ".";
        question = "Who is the director of the " + thing + " museum?";
        answer = person;
        break;
      case 2:
        note = "The " + thing + " bridge was built by " + person + " and has " + code + " bolts.";
        question = "How many bolts has the " + thing + " bridge?";
        answer = code;
        break;
      default:
        note = "The village of " + thing + " lies on the river " + made_name(random) + " and has " + code + " people.";
        question = "How many people live in " + thing + "?";
        answer = code;
        break;
    }
    task.notes.push_back(note);
    if (i == asked) {
      task.text = question;
      task.answer = answer;
    }
  }
  return task;
}

constexpr std::array<std::pair<const char*, const char*>, 32> kCapitals = {{{"Argentina", "Buenos Aires"},
                                                                            {"Austria", "Vienna"},
                                                                            {"Belgium", "Brussels"},
                                                                            {"Bulgaria", "Sofia"},
                                                                            {"Canada", "Ottawa"},
                                                                            {"Chile", "Santiago"},
                                                                            {"China", "Beijing"},
                                                                            {"Colombia", "Bogot"},
                                                                            {"Croatia", "Zagreb"},
                                                                            {"Cuba", "Havana"},
                                                                            {"Denmark", "Copenhagen"},
                                                                            {"Egypt", "Cairo"},
                                                                            {"Finland", "Helsinki"},
                                                                            {"France", "Paris"},
                                                                            {"Germany", "Berlin"},
                                                                            {"Greece", "Athens"},
                                                                            {"Hungary", "Budapest"},
                                                                            {"Iceland", "Reykjav"},
                                                                            {"India", "Delhi"},
                                                                            {"Ireland", "Dublin"},
                                                                            {"Italy", "Rome"},
                                                                            {"Japan", "Tokyo"},
                                                                            {"Kenya", "Nairobi"},
                                                                            {"Norway", "Oslo"},
                                                                            {"Peru", "Lima"},
                                                                            {"Poland", "Warsaw"},
                                                                            {"Portugal", "Lisbon"},
                                                                            {"Romania", "Bucharest"},
                                                                            {"Spain", "Madrid"},
                                                                            {"Sweden", "Stockholm"},
                                                                            {"Thailand", "Bangkok"},
                                                                            {"Vietnam", "Hanoi"}}};

EvalTask made_fact(std::mt19937& random) {
  const auto& [country, capital] = kCapitals[random() % kCapitals.size()];
  const std::string name = country;
  const std::array<std::string, 3> asked = {"What is the capital of " + name + "?",
                                            "Which city is the capital of " + name + "?",
                                            "Name the capital of " + name + "."};
  return {TaskKind::facts, asked[random() % asked.size()], capital};
}

EvalTask made_greeting(std::mt19937& random) {
  constexpr std::array kGreetings = {"Hello",   "Hi there!",     "Good morning", "Bonjour",        "Hey, how are you?",
                                     "Salut !", "Good evening!", "Thanks a lot", "Merci beaucoup", "Bye"};
  return {TaskKind::greetings, kGreetings[random() % kGreetings.size()], ""};
}

EvalTask made_task(TaskKind kind, std::mt19937& random, std::set<std::string>& taken) {
  switch (kind) {
    case TaskKind::sums: return made_sum(random);
    case TaskKind::short_sums: return made_short_sum(random);
    case TaskKind::problems: return made_problem(random);
    case TaskKind::long_problems: return made_problem(random, true);
    case TaskKind::facts: return made_fact(random);
    case TaskKind::notes: return made_note(random);
    case TaskKind::documents: return made_note(random, &taken);
    case TaskKind::greetings: return made_greeting(random);
  }
  return {};
}

}  // namespace

const char* task_name(TaskKind kind) {
  switch (kind) {
    case TaskKind::sums: return "sums";
    case TaskKind::short_sums: return "short sums";
    case TaskKind::problems: return "word problems";
    case TaskKind::long_problems: return "long word problems";
    case TaskKind::facts: return "facts";
    case TaskKind::notes: return "notes";
    case TaskKind::documents: return "documents";
    case TaskKind::greetings: return "greetings";
  }
  return "";
}

std::vector<EvalTask> made_tasks(TaskKind kind, uint32_t seed, int n) {
  std::mt19937 random(seed);
  std::vector<EvalTask> tasks;
  std::set<std::string> taken;
  for (int i = 0; i < n; ++i) tasks.push_back(made_task(kind, random, taken));
  return tasks;
}

bool is_right(const std::string& text, const EvalTask& task) {
  std::string plain;
  std::copy_if(text.begin(), text.end(), std::back_inserter(plain), [](char c) { return c != ','; });
  const auto is_digit = [&](size_t i) { return i < plain.size() && plain[i] >= '0' && plain[i] <= '9'; };
  for (size_t at = plain.find(task.answer); at != std::string::npos; at = plain.find(task.answer, at + 1)) {
    if (!is_digit(at + task.answer.size()) && (at == 0 || !is_digit(at - 1))) return true;
  }
  return false;
}

}  // namespace chimere::apps
