#include "backend/adapter.h"

#include <bit>

#include "backend/backend.h"
#include "base/hash.h"

namespace chimere {

uint64_t Adapter::size_bytes() const {
  uint64_t n = 0;
  for (const LowRank& change : by_matrix) n += (change.a.size() + change.b.size()) * sizeof(float);
  return n;
}

uint64_t AdapterSet::key() const {
  uint64_t h = hash64("adapters");
  for (const Use& use : uses) h = hash_mix(hash_mix(h ^ use.adapter->fingerprint) ^ std::bit_cast<uint32_t>(use.scale));
  return h;
}

bool Slice::is_adapted() const { return adapters && !adapters->uses.empty(); }

std::vector<bool> adaptable_matrices(const Program& program) {
  std::vector<bool> can(program.matrices.size(), false);
  const auto mark = [&](MatrixId id) {
    if (id != kNone) can[static_cast<size_t>(id)] = true;
  };
  for (const Op& any : program.ops) {
    if (const auto* o = std::get_if<op::NormMatmul>(&any)) {
      for (const op::Projection& p : o->outs) mark(p.weight);
    }
    if (const auto* o = std::get_if<op::MatmulAdd>(&any)) mark(o->weight);
    if (const auto* o = std::get_if<op::DenseFfn>(&any)) {
      for (const MatrixId id : {o->gate, o->up, o->down}) mark(id);
    }
  }
  for (const Op& any : program.trunk()) {
    if (const auto* o = std::get_if<op::LmHead>(&any)) mark(o->weight);
  }
  return can;
}

std::string adapted_name(const Program& program, MatrixId id) {
  for (const Op& any : program.trunk()) {
    if (const auto* o = std::get_if<op::LmHead>(&any); o && o->weight == id) return "output.weight";
  }
  return std::string(program.matrices[static_cast<size_t>(id)].name);
}

}  // namespace chimere
