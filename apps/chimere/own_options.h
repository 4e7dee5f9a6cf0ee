// own_options.h  Options of single models (terminal/option_file.h) put where the command line puts its own.
//
// Of what is said of an option, that of the first of these holds: the command line, the environment, `model-options` of
// chimere.yaml, those of the folder's own file, the options of chimere.yaml for all models, the default.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "serve_options.h"

namespace chimere::apps {

// The options of a model that has some of its own, and the template they name.
struct OwnOptions {
  ServeOptions options;
  std::string chat_template;
  std::vector<std::pair<std::string, std::string>> shown;  // name and value of those that hold, without paths
};
using OwnOptionsByName = std::map<std::string, OwnOptions>;

// What `configuration` and the files of the folders say, one section of each model.
Result<std::vector<ModelSection>> all_sections(const Configuration& configuration,
                                               const std::vector<std::string>& folders);
// The same, put over `o`: every option has been tried. Errors say the place, and the nearest name.
Result<OwnOptionsByName> own_options(const ServeOptions& o, const Configuration& configuration);

// Those of a server of one model become its options.
Status use_own_options(ServeOptions& o, const std::string& model);

// Those of a server that runs; they may be exchanged while models are loaded with them.
class OwnOptionsBook {
 public:
  explicit OwnOptionsBook(OwnOptionsByName own) { set(std::move(own)); }
  void set(OwnOptionsByName own);
  std::shared_ptr<const OwnOptionsByName> get() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const OwnOptionsByName> own_;
};

}  // namespace chimere::apps
