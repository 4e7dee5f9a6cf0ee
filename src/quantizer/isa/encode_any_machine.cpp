// encode_any_machine.cpp  The encoders with what any x86-64 or arm64 has.
#include "quantizer/isa/encode_level.h"

namespace chimere::quantizer {

const LevelEncoders kEncodersAnyMachine = any_machine::encoders();

}  // namespace chimere::quantizer
