// data_folder.h  Where the program keeps its state between runs.
#pragma once

#include <string>

namespace chimere::apps {

// $CHIMERE_HOME, else the user's XDG data folder; empty when the environment names no place.
std::string data_folder();

// Of the prefix cache, where none is named; empty when there is no data folder.
std::string default_cache_folder();

}  // namespace chimere::apps
