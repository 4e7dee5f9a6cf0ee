// encode_avx2.cpp  The same encoders with registers of eight floats.
#if defined(__x86_64__)
#define CHIMERE_ENCODE_LEVEL avx2
#include "quantizer/isa/encode_level.h"

namespace chimere::quantizer {

const LevelEncoders kEncodersAvx2 = avx2::encoders();

}  // namespace chimere::quantizer
#endif
