// doctor.cpp  chimere doctor: what this machine can do, measured once and kept, and what that means for models.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/platform/process.h"
#include "commands.h"
#include "common.h"
#include "data_folder.h"
#include "machine_file.h"

namespace chimere::apps {
namespace {

struct DoctorOptions {
  std::string folder;
  bool json = false;
  bool again = false;
};

constexpr uint64_t kDiskBytes = uint64_t{256} << 20;

double gb(double bytes) { return bytes / 1e9; }
double gb(uint64_t bytes) { return static_cast<double>(bytes) / 1e9; }

// Sets either the figures or the reason why there are none.
void measure_folder(const std::string& folder, engine::Machine& m) {
  m.disk.reset();
  std::error_code error;
  if (folder == data_folder()) std::filesystem::create_directories(folder, error);
  const auto space = std::filesystem::space(folder, error);
  if (error) {
    m.disk_problem = folder + ": " + error.message();
    return;
  }
  if (space.available < 2 * kDiskBytes) {
    m.disk_problem = folder + ": the disk is nearly full: expected " + std::to_string(2 * kDiskBytes >> 20) +
                     " MiB to measure with, found " + std::to_string(space.available >> 20);
    return;
  }
  auto disk = engine::measure_disk(folder, kDiskBytes);
  if (disk) {
    m.disk = *disk;
  } else {
    m.disk_problem = disk.error().message;
  }
}

// Measures what is not known, or was asked for. True when that was something.
Result<bool> complete(engine::Machine& m, const DoctorOptions& o) {
  bool is_new = measure_missing(m, engine::usual_formats());
  if (!m.disk || !o.folder.empty()) {
    const std::string folder = !o.folder.empty() ? o.folder : data_folder().empty() ? "." : data_folder();
    show_measuring("the disk of " + folder);
    measure_folder(folder, m);
    is_new |= m.disk.has_value();
  }
  if (!m.card) {
    show_measuring("the card");
    TRY_ASSIGN(m.card, engine::measure_card());
    is_new |= m.card.has_value();
  }
  show_measuring("");
  return is_new;
}

void print_meaning(const engine::Machine& m) {
  // The system, the program itself and the states of a few conversations want a part.
  const double room = 0.8 * gb(m.host.ram_bytes);
  std::printf("\nFiles of up to about %.0f GB fit into memory.", room);
  if (const engine::ProductSpeed* q4 = m.product(DType::Q4_K)) {
    constexpr double kDense8b = 4.9e9, kActive3b = 1.9e9;
    std::printf(
        " Computed there, a dense model of 8 B parameters in Q4_K (4.9 GB) writes about %.1f tokens\n"
        "a second, a mixture of 35 B of which 3 B are active (1.9 GB a token) about %.1f.",
        q4->decode_bytes_s / kDense8b, q4->decode_bytes_s / kActive3b);
  }
  if (m.card) {
    std::printf(
        "\nThe card holds files of up to about %.0f GB whole; of larger mixtures of experts, what does not fit\n"
        "stays in memory.",
        0.85 * gb(m.card->free_bytes));
  }
  std::printf(" `chimere plan MODEL` says it of a file.\n");
}

void print_text(const engine::Machine& m) {
  std::printf("processor  %s, %d cores, kernels for %s\n", m.host.processor.c_str(), m.host.cores, m.host.isa.c_str());
  std::printf("memory     %.1f GB, of which %.1f GB are free now; reads", gb(m.host.ram_bytes),
              gb(available_memory_bytes()));
  for (size_t i = 0; i < m.ram.size(); ++i) {
    std::printf("%s %.1f GB/s with %d thread%s", i > 0 ? "," : "", gb(m.ram[i].bytes_s), m.ram[i].threads,
                m.ram[i].threads > 1 ? "s" : "");
  }
  std::printf("\n");
  if (m.disk) {
    std::printf("disk       %s: reads %.2f GB/s in order, %.2f GB/s in pieces of 1.3 MB anywhere, %d at a time%s\n",
                m.disk->folder.c_str(), gb(m.disk->sequential_bytes_s), gb(m.disk->random_bytes_s),
                engine::kReadsInFlight,
                m.disk->is_direct ? "" : "\n           (it takes no direct reads: part of this may be the page cache)");
  } else {
    std::printf("disk       not measured: %s\n", m.disk_problem.c_str());
  }
  if (m.card) {
    std::printf("card       %s, %.1f GB, of which %.1f GB are free now; copies %.0f GB/s\n", m.card->name.c_str(),
                gb(m.card->memory_bytes), gb(m.card->free_bytes), gb(m.card->copy_bytes_s));
    std::printf("bus        to the card %.1f GB/s, back %.1f GB/s; from memory that is not pinned %.1f and %.1f\n",
                gb(m.card->to_card_pinned), gb(m.card->from_card_pinned), gb(m.card->to_card), gb(m.card->from_card));
  } else {
    std::printf("card       none that this build can use\n");
  }
  std::printf("\nweights    one token        many at once\n");
  for (const engine::ProductSpeed& p : m.products) {
    std::printf("%-8s %7.1f GB/s %11.0f GFLOP/s\n", std::string(name(p.type)).c_str(), gb(p.decode_bytes_s),
                p.prompt_flop_s / 1e9);
  }
  print_meaning(m);
}

Status run(const DoctorOptions& o) {
  engine::Machine machine = o.again ? engine::Machine{} : kept_machine().value_or(engine::Machine{});
  TRY_ASSIGN(const bool is_new, complete(machine, o));
  if (o.json) {
    std::printf("%s\n", machine_json(machine).dump(2).c_str());
  } else {
    print_text(machine);
    std::printf("Measured at %s; --again measures anew.\n", machine.measured.c_str());
  }
  if (!is_new) return Ok{};
  Status kept = keep_machine(machine);
  if (!kept) kept.error().message = "the figures were not kept: " + kept.error().message;
  return kept;
}

}  // namespace

void add_doctor(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand("doctor", "Measure what this machine can do, and keep it");
  command->add_flag("--again", options->again, "measure anew, whatever was kept");
  command->add_option(
      "--folder", options->folder,
      "measure the disk that this folder is on, e.g. that of the models; the data folder's when absent");
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &outcome] {
    if (Status s = run(*options); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
