#include "version.h"

#include "backend/cpu/cpu_features.h"
#include "models/model.h"
#include "server/admin/page.h"

namespace chimere::apps {

const char* build_commit();  // commit.cpp, which the build writes

const char* version_number() { return CHIMERE_VERSION; }

std::string version_text() {
  std::string backends = "cpu, reference";
  if (const auto cuda = models::backend_from_name("cuda"); cuda) backends = "cuda, " + backends;
  std::string built;
  for (const cpu::Isa isa : cpu::built_isas()) built += (built.empty() ? "" : ", ") + std::string(cpu::name(isa));
  return std::string("chimere ") + CHIMERE_VERSION + "\ncommit: " + build_commit() + "\nbackends: " + backends +
         "\ninstruction sets: " + built + " (here: " + std::string(cpu::name(cpu::detect_isa())) + ")" +
         "\nweb page: " + (server::embedded_page().empty() ? "not built" : "built in") + "\ncompiler: " + __VERSION__;
}

}  // namespace chimere::apps
