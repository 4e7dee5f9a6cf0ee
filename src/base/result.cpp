#include "base/result.h"

namespace chimere {

const char* code_name(Code code) {
  switch (code) {
    case Code::invalid_argument: return "invalid argument";
    case Code::not_found: return "not found";
    case Code::corrupt: return "corrupt";
    case Code::unsupported: return "unsupported";
    case Code::exhausted: return "exhausted";
    case Code::cancelled: return "cancelled";
    case Code::io: return "i/o";
    case Code::device: return "device";
    case Code::internal: return "internal";
  }
  return "unknown";
}

}  // namespace chimere
