// run_code.h  The tool "run_code": a model's Python program in a sandbox of bubblewrap's.
//
// The program sees the interpreter, its standard library and the system's shared libraries, read-only, and an empty
// folder in memory; no network, no other process, no file of anybody's, and no name that it could reach one by. It comes
// in by its standard input, so that no shell and no argument carries it.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "tools/sandbox.h"
#include "tools/tool.h"

namespace chimere::tools {

struct RunCodeOptions {
  std::string bubblewrap = "bwrap";
  std::string python = "/usr/bin/python3";
  SandboxLimits limits = {};
};

inline constexpr size_t kMaxCodeBytes = size_t{256} << 10;

// Whether code can be run here, by running some; else why not: no bubblewrap, no Python, no user namespaces.
Status run_code_availability(const RunCodeOptions& options = {});

// The tool; an error, as above, where it cannot be offered.
Result<std::shared_ptr<Tool>> make_run_code(const RunCodeOptions& options = {});

}  // namespace chimere::tools
