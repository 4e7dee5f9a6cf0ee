// data_folder.h  Where the program keeps its state between runs.
#pragma once

#include <string>

namespace chimere::apps {

// $CHIMERE_HOME, else the user's XDG data folder; empty when the environment names no place.
std::string data_folder();

}  // namespace chimere::apps
