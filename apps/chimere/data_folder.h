// data_folder.h  Where the program keeps its state between runs.
#pragma once

#include <string>

namespace chimere::apps {

// $CHIMERE_HOME, else the user's XDG data folder; empty when the environment names no place.
std::string data_folder();

// Of the tokens that keys have used; empty when there is no data folder.
std::string key_usage_file();

// Of the prefix cache, where none is named; empty when there is no data folder.
std::string default_cache_folder();

// Of experts that RAM does not hold; in the system's folder of temporary files when there is no data folder.
std::string default_experts_folder();

// Of the collections of documents; empty when there is no data folder.
std::string default_collections_file();

// Of the answers that are kept to learn from; empty when there is no data folder.
std::string default_journal_file();

// Of what was learned from them; empty when there is no data folder.
std::string default_improve_folder();

}  // namespace chimere::apps
