// Tensor type ids met in real files that this reader refuses: removed from the format, meant for activations only, or
// private to another program. A name in the message tells the user which converter to look at.
#include <string_view>

#include "gguf/shard.h"

namespace chimere::gguf {
namespace {

struct ForeignType {
  uint32_t id;
  std::string_view name;
};

constexpr ForeignType kIkTypes[] = {
    {97, "Q8_0_X4"},    {98, "Q8_1_X4"},     {99, "Q8_2_X4"},   {133, "Q6_0"},      {134, "IQ1_BN"},
    {135, "IQ2_BN"},    {136, "Q8_K64"},     {145, "IQ2_KS"},   {146, "IQ4_KSS"},   {147, "Q8_K16"},
    {148, "Q8_K32"},    {149, "Q8_KR8"},     {150, "Q8_K128"},  {151, "Q8_KV"},     {152, "IQ5_KS"},
    {153, "IQ2_KT"},    {154, "IQ3_KT"},     {155, "IQ4_KT"},   {156, "IQ3_KS"},    {157, "IQ2_KL"},
    {158, "IQ1_KT"},    {202, "Q4_0_R8"},    {206, "Q5_0_R4"},  {208, "Q8_0_R8"},   {210, "Q2_K_R4"},
    {211, "Q3_K_R4"},   {212, "Q4_K_R4"},    {213, "Q5_K_R4"},  {214, "Q6_K_R4"},   {216, "IQ2_XXS_R4"},
    {217, "IQ2_XS_R4"}, {218, "IQ3_XXS_R4"}, {219, "IQ1_S_R4"}, {220, "IQ4_NL_R4"}, {221, "IQ3_S_R4"},
    {222, "IQ2_S_R4"},  {223, "IQ4_XS_R8"},  {229, "IQ1_M_R4"}, {230, "BF16_R16"},  {233, "Q6_0_R4"},
    {335, "IQ2_BN_R4"}, {337, "IQ2_K_R4"},   {338, "IQ3_K_R4"}, {339, "IQ4_K_R4"},  {340, "IQ5_K_R4"},
    {344, "IQ4_KS_R4"}, {352, "IQ5_KS_R4"},  {398, "Q8_KV_R8"}, {399, "Q8_K_R8"},
};

// The ranges ik_llama.cpp takes its ids from: one it added since is still worth naming as its own.
bool in_ik_range(uint32_t id) { return (id >= 97 && id <= 99) || (id >= 133 && id <= 158) || (id >= 202 && id <= 399); }

// The part of the message after the id.
std::string reason(uint32_t id) {
  const std::string removed = " was removed from the format";
  const std::string activations = " is for activations, not for the tensors of a file";
  for (const ForeignType& type : kIkTypes) {
    if (type.id == id) return std::string(type.name) + " of ik_llama.cpp is not supported";
  }
  if (in_ik_range(id)) return "of ik_llama.cpp is not supported";
  switch (id) {
    case 4: return "Q4_2" + removed;
    case 5: return "Q4_3" + removed;
    case 9: return "Q8_1" + activations;
    case 15: return "Q8_K" + activations;
    case 31: return "Q4_0_4_4" + removed;
    case 32: return "Q4_0_4_8" + removed;
    case 33: return "Q4_0_8_8" + removed;
    case 36: return "IQ4_NL_4_4" + removed + " (ik_llama.cpp uses this id for I2_S, which is not supported)";
    case 37: return "IQ4_NL_4_8" + removed;
    case 38: return "IQ4_NL_8_8" + removed;
    default: return "is unknown";
  }
}

}  // namespace

std::string refused_type_text(uint32_t id) { return "type " + std::to_string(id) + " " + reason(id); }

}  // namespace chimere::gguf
