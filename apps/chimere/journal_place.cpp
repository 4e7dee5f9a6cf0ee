#include "journal_place.h"

#include <cstdlib>
#include <filesystem>

#include "data_folder.h"
#include "store/journal_url.h"

namespace chimere::apps {

Status refuse_password_on_line(const std::string& place) {
  if (!store::has_password(place)) return Ok{};
  return Error{Code::invalid_argument,
               "--journal: expected a URL without a password, which everybody of this machine "
               "could read in `ps`: put the URL into CHIMERE_JOURNAL or into the file of options, "
               "or the password into the file that PGPASSFILE names"};
}

Result<std::shared_ptr<store::Journal>> open_existing_journal(const std::string& given) {
  TRY(refuse_password_on_line(given));
  const char* const named = std::getenv("CHIMERE_JOURNAL");
  std::string place = !given.empty() ? given : named ? named : "";
  if (place.empty()) place = default_journal_file();
  if (place.empty()) return Error{Code::invalid_argument, "--journal: expected a file, as no data folder is known"};
  std::error_code error;
  if (!store::is_journal_url(place) && !std::filesystem::exists(place, error)) {
    return Error{Code::not_found, place + ": nothing is kept there; `chimere serve` makes it, unless --learn off"};
  }
  return store::Journal::open(place, store::Journal::Consent::ask, {.days = 0});
}

}  // namespace chimere::apps
