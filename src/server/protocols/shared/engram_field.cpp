#include "server/protocols/shared/engram_field.h"

#include <string_view>

namespace chimere::server {
namespace {

using orchestrator::MemoryUse;

constexpr size_t kMaxTables = 8;
constexpr double kMaxAlpha = 2;
constexpr int kMaxPassages = 16;  // each is asked at every token
constexpr int kMaxNotes = 16;

void read_table(JsonFields& fields, const Json& item, size_t index, MemoryUse& use) {
  MemoryUse::Named named;
  if (item.is_string()) {
    named.name = item.get<std::string>();
  } else if (item.is_object()) {
    JsonFields inner(item, "engram.tables[" + std::to_string(index) + "].");
    inner.string("name", named.name);
    inner.number("weight", named.weight, 0, 1);
    fields.take_error(inner);
  } else {
    fields.fail_type("tables", "names, or objects with name and weight", item);
  }
  if (named.name.empty()) fields.fail("tables", "expected the name of a table, found none");
  use.tables.push_back(std::move(named));
}

// `engram_table`, a name or the path of a file, of which the name counts, and `engram_alpha`: one table and its weight.
void read_one_table(JsonFields& fields, MemoryUse& use) {
  for (const char* name : {"engram_table", "engram_alpha"}) {
    if (fields.find(name) && fields.find("engram")) fields.fail(name, "expected it or engram, found both");
  }
  std::string table;
  fields.string("engram_table", table);
  fields.number("engram_alpha", use.alpha, 0, kMaxAlpha);
  if (const size_t slash = table.find_last_of("/\\"); slash != std::string::npos) table.erase(0, slash + 1);
  for (const std::string_view ending : {".engram", ".engr"}) {
    if (table.ends_with(ending)) table.resize(table.size() - ending.size());
  }
  if (!table.empty()) use.tables.push_back({std::move(table), 1.0f});
}

}  // namespace

void read_engram(JsonFields& fields, MemoryUse& use) {
  read_one_table(fields, use);
  const Json* object = fields.object("engram");
  if (!object) return;
  JsonFields inner(*object, "engram.");
  if (const Json* tables = inner.array("tables")) {
    if (tables->size() > kMaxTables) {
      inner.fail("tables",
                 "expected at most " + std::to_string(kMaxTables) + ", found " + std::to_string(tables->size()));
    }
    for (size_t i = 0; i < tables->size() && inner.ok(); ++i) read_table(inner, (*tables)[i], i, use);
  }
  inner.string("passages", use.passages);
  inner.integer("top", use.top_passages, 1, kMaxPassages);
  inner.integer("notes", use.notes, 0, kMaxNotes);
  inner.number("alpha", use.alpha, 0, kMaxAlpha);
  std::string phase = "answer";
  inner.string("phase", phase);
  if (phase != "answer" && phase != "all") {
    inner.fail("phase", "expected \"answer\" or \"all\", found \"" + phase.substr(0, 64) + "\"");
  }
  use.in_thoughts = phase == "all";
  for (const std::string& name : inner.unknown()) {
    fields.fail("engram", "expected tables, passages, top, notes, alpha and phase, found '" + name.substr(0, 64) + "'");
  }
  fields.take_error(inner);
}

std::string memory_owner(const std::string& key_name, const std::string& user) {
  if (key_name.empty() || user.empty()) return key_name + user;
  return key_name + "/" + user;
}

}  // namespace chimere::server
