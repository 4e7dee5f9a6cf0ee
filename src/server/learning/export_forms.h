// export_forms.h  Kept answers as lines of JSON for other programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/journal.h"

namespace chimere::server {

enum class ExportForm {
  journal,         // everything
  training_pairs,  // question and answer
  quality_scores,  // what a person thought of it
  spin_pairs,      // the answer and the corrected one
};

// By name, as the enumerators are called.
std::optional<ExportForm> parse_export_form(std::string_view name);

// One line, without its end; nothing where the answer has nothing of that form.
std::optional<std::string> export_line(const store::KeptAnswer& kept, ExportForm form);

}  // namespace chimere::server
