#include "server/learning/export_forms.h"

#include <utility>

#include "server/http/api_keys.h"
#include "server/learning/learning_json.h"

namespace chimere::server {
namespace {

constexpr std::pair<std::string_view, ExportForm> kForms[] = {{"journal", ExportForm::journal},
                                                              {"training_pairs", ExportForm::training_pairs},
                                                              {"quality_scores", ExportForm::quality_scores},
                                                              {"spin_pairs", ExportForm::spin_pairs}};
constexpr size_t kPromptHashDigits = 16;

// The last text of the user.
std::string question_of(const store::KeptAnswer& kept) {
  const auto messages = parse_json(kept.messages);
  std::string question;
  if (!messages || !messages->is_array()) return question;
  for (const Json& message : *messages) {
    if (message.value("role", "") == "user") question = message.value("content", "");
  }
  return question;
}

std::string hash_of(const std::string& question) { return sha256_hex(question).substr(0, kPromptHashDigits); }

}  // namespace

std::optional<ExportForm> parse_export_form(std::string_view name) {
  for (const auto& [known, form] : kForms) {
    if (known == name) return form;
  }
  return std::nullopt;
}

std::optional<std::string> export_line(const store::KeptAnswer& kept, ExportForm form) {
  if (form == ExportForm::journal) return to_text(kept_json(kept));
  const std::string question = question_of(kept);
  const std::string hash = hash_of(question);
  if (form == ExportForm::training_pairs) {
    return to_text(Json{{"ts", kept.created},
                        {"prompt", question},
                        {"reasoning", ""},
                        {"response", kept.answer},
                        {"budget_retries", 0},
                        {"prompt_hash", hash}});
  }
  if (form == ExportForm::quality_scores) {
    if (kept.score() == 0) return std::nullopt;
    const bool is_said = kept.rating() > 0;
    return to_text(Json{{"ts", kept.created},
                        {"route", kept.route.empty() ? "default" : kept.route},
                        {"score", kept.score()},
                        {"reason", is_said ? "" : kept.score_reason},
                        {"scorer", is_said ? "person" : kept.scorer},
                        {"prompt_len", question.size()},
                        {"response_len", kept.answer.size()},
                        {"prompt_hash", hash}});
  }
  const std::string* corrected = kept.correction();
  if (!corrected) return std::nullopt;
  return to_text(Json{{"prompt", question},
                      {"chosen", *corrected},
                      {"rejected", kept.answer},
                      {"prompt_hash", hash},
                      {"iteration", 0},
                      {"source", "correction"},
                      {"teacher_len", corrected->size()},
                      {"model_len", kept.answer.size()},
                      {"gen_time_s", static_cast<double>(kept.milliseconds) / 1000},
                      {"ts", kept.created}});
}

}  // namespace chimere::server
