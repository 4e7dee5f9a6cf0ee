// run_code.h  The tool "run_code": a model's Python program in a sandbox of bubblewrap's.
//
// The program sees the interpreter, its standard library and the system's shared libraries, read-only, and an empty
// folder in memory; no network, no other process, no file of anybody's, and no name that it could reach one by. It comes
// in by its standard input, so that no shell and no argument carries it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "tools/tool.h"

namespace chimere::tools {

struct RunCodeOptions {
  std::string bubblewrap = "bwrap";
  std::string python = "/usr/bin/python3";
  std::chrono::milliseconds time{10'000};
  uint64_t memory_bytes = uint64_t{512} << 20;  // of each process
  uint64_t folder_bytes = uint64_t{64} << 20;   // of all files that it writes
  uint32_t processes = 8;                       // and threads, all together
  uint64_t output_bytes = uint64_t{64} << 10;   // more ends the program
};

inline constexpr size_t kMaxCodeBytes = size_t{256} << 10;

// Whether code can be run here, by running some; else why not: no bubblewrap, no Python, no user namespaces.
Status run_code_availability(const RunCodeOptions& options = {});

// The tool; an error, as above, where it cannot be offered.
Result<std::shared_ptr<Tool>> make_run_code(const RunCodeOptions& options = {});

}  // namespace chimere::tools
