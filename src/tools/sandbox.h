// sandbox.h  Where programs run that a model may start: bubblewrap's namespaces, limits, and what is told of their end.
//
// A program sees what is bound for it, read-only, and an empty folder in memory; no network, no other process, no file of
// anybody's, no variable of our environment. For .cpp files.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/platform/child_process.h"
#include "base/result.h"
#include "tools/tool.h"

namespace chimere::tools {

struct SandboxLimits {
  std::chrono::milliseconds time{10'000};
  uint64_t memory_bytes = uint64_t{512} << 20;  // of each process
  uint64_t folder_bytes = uint64_t{64} << 20;   // of all files that it writes
  uint32_t processes = 8;                       // and threads, all together
  uint64_t output_bytes = uint64_t{64} << 10;   // more ends the program
};

// The arguments of bubblewrap that make it. `read_only`: files and folders that are seen at their own place; the system's
// /lib and /lib64 always are. What is run stands behind them: `--`, the program, its arguments.
std::vector<std::string> sandbox_arguments(const std::string& bubblewrap, const SandboxLimits& limits,
                                           const std::vector<std::string>& read_only);

Result<ProgramRun> run_in_sandbox(const SandboxLimits& limits, const std::vector<std::string>& arguments,
                                  std::string_view input, const ToolContext& context);

// What the program printed and how it ended, as a model reads it, and for the trace with the time since `began`.
ToolResult sandbox_result(const ProgramRun& run, const SandboxLimits& limits,
                          std::chrono::steady_clock::time_point began);

}  // namespace chimere::tools
