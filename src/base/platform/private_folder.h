// private_folder.h  A folder that its owner alone can look into.
#pragma once

#include <string>

#include "base/result.h"

namespace chimere {

// Makes it with mode 0700. False when something of that name is there already; nothing is changed then.
Result<bool> make_private_folder(const std::string& path);

}  // namespace chimere
