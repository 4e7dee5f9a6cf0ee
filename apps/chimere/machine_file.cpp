#include "machine_file.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/platform/atomic_file.h"
#include "base/platform/private_file.h"
#include "data_folder.h"

namespace chimere::apps {
namespace {

using Json = nlohmann::ordered_json;
using engine::Machine;

constexpr int kVersion = 1;
constexpr uintmax_t kMostBytes = 1 << 20;

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

double number(const Json& json, const char* key) {
  const auto found = json.find(key);
  const double value = found != json.end() && found->is_number() ? found->get<double>() : 0;
  return std::isfinite(value) && value > 0 ? value : 0;
}

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

Json part(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? Json() : *found;
}

Machine parse(const Json& json) {
  Machine m;
  m.measured = text_of(json, "measured");
  const Json host = part(json, "host");
  m.host = {text_of(host, "processor"), text_of(host, "instruction_set"), static_cast<int>(number(host, "cores")),
            static_cast<uint64_t>(number(host, "ram_bytes")), static_cast<uint64_t>(number(host, "cache_bytes"))};
  for (const Json& one : part(json, "ram")) {
    m.ram.push_back({static_cast<int>(number(one, "threads")), number(one, "bytes_per_second")});
  }
  for (const Json& one : part(json, "products")) {
    const auto type = dtype_from_name(text_of(one, "format"));
    if (!type) continue;
    m.products.push_back({*type, number(one, "decode_bytes_per_second"), number(one, "cached_bytes_per_second"),
                          number(one, "prompt_flop_per_second"), number(one, "expert_flop_per_second")});
  }
  m.barrier_s = number(json, "barrier_seconds");
  if (const Json disk = part(json, "disk"); disk.is_object() && disk.contains("folder")) {
    m.disk = {text_of(disk, "folder"), number(disk, "sequential_bytes_per_second"),
              number(disk, "random_bytes_per_second"), part(disk, "direct") == Json(true)};
  }
  if (const Json card = part(json, "card"); card.is_object()) {
    m.card = {text_of(card, "name"),
              static_cast<uint64_t>(number(card, "memory_bytes")),
              static_cast<uint64_t>(number(card, "free_bytes")),
              number(card, "copy_bytes_per_second"),
              number(card, "to_card_pinned_bytes_per_second"),
              number(card, "from_card_pinned_bytes_per_second"),
              number(card, "to_card_bytes_per_second"),
              number(card, "from_card_bytes_per_second")};
  }
  return m;
}

}  // namespace

std::string machine_file() {
  const std::string data = data_folder();
  return data.empty() ? "" : data + "/machine.json";
}

Json machine_json(const Machine& m) {
  Json json = {{"version", kVersion}, {"measured", m.measured}};
  json["host"] = {{"processor", m.host.processor},
                  {"instruction_set", m.host.isa},
                  {"cores", m.host.cores},
                  {"ram_bytes", m.host.ram_bytes},
                  {"cache_bytes", m.host.cache_bytes}};
  json["ram"] = Json::array();
  for (const engine::ThreadsSpeed& s : m.ram) {
    json["ram"].push_back({{"threads", s.threads}, {"bytes_per_second", s.bytes_s}});
  }
  json["products"] = Json::array();
  for (const engine::ProductSpeed& p : m.products) {
    json["products"].push_back({{"format", name(p.type)},
                                {"decode_bytes_per_second", p.decode_bytes_s},
                                {"cached_bytes_per_second", p.cached_bytes_s},
                                {"prompt_flop_per_second", p.prompt_flop_s},
                                {"expert_flop_per_second", p.expert_flop_s}});
  }
  json["barrier_seconds"] = m.barrier_s;
  if (m.disk) {
    json["disk"] = {{"folder", m.disk->folder},
                    {"sequential_bytes_per_second", m.disk->sequential_bytes_s},
                    {"random_bytes_per_second", m.disk->random_bytes_s},
                    {"random_read_bytes", engine::kExpertRead},
                    {"reads_in_flight", engine::kReadsInFlight},
                    {"direct", m.disk->is_direct}};
  } else {
    json["disk"] = {{"problem", m.disk_problem}};
  }
  json["card"] = nullptr;
  if (m.card) {
    json["card"] = {{"name", m.card->name},
                    {"memory_bytes", m.card->memory_bytes},
                    {"free_bytes", m.card->free_bytes},
                    {"copy_bytes_per_second", m.card->copy_bytes_s},
                    {"to_card_pinned_bytes_per_second", m.card->to_card_pinned},
                    {"from_card_pinned_bytes_per_second", m.card->from_card_pinned},
                    {"to_card_bytes_per_second", m.card->to_card},
                    {"from_card_bytes_per_second", m.card->from_card}};
  }
  return json;
}

std::optional<Machine> kept_machine() {
  std::error_code error;
  const std::string path = machine_file();
  const uintmax_t size = path.empty() ? 0 : std::filesystem::file_size(path, error);
  if (path.empty() || error || size > kMostBytes) return std::nullopt;
  std::ifstream file(path);
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object() || number(json, "version") != kVersion) return std::nullopt;
  Machine machine = parse(json);
  if (machine.host != engine::host_facts() || machine.ram.empty()) return std::nullopt;
  return machine;
}

Status keep_machine(const Machine& machine) {
  const std::string path = machine_file();
  if (path.empty()) {
    return Error{Code::not_found, "there is no data folder to keep the figures in: set CHIMERE_HOME or HOME"};
  }
  TRY(make_private_folders(data_folder()));
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  const std::string text = machine_json(machine).dump(2) + "\n";
  TRY(file.write(std::as_bytes(std::span(text))));
  return file.commit();
}

void show_measuring(const std::string& what) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, what.empty() ? "\r\033[K" : "\r\033[Kmeasuring %s ...", what.c_str());
}

bool measure_missing(Machine& machine, const std::vector<DType>& formats) {
  bool is_new = false;
  const auto say = [&is_new](const std::string& what) {
    is_new = true;
    show_measuring(what);
  };
  machine.host = engine::host_facts();
  if (machine.ram.empty()) {
    say("memory");
    engine::measure_ram(machine, machine.threads);
    machine.barrier_s = engine::measure_barrier(machine.threads);
  }
  for (const DType type : formats) {
    if (machine.product(type)) continue;
    say("products with " + std::string(name(type)) + " weights");
    machine.products.push_back(engine::measure_product(type, machine.threads));
  }
  if (is_new) machine.measured = today();
  show_measuring("");
  return is_new;
}

}  // namespace chimere::apps
