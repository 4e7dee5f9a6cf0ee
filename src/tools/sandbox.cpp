#include "tools/sandbox.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "text/json.h"

namespace chimere::tools {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kNobody = 65534;
constexpr size_t kMaxErrorBytes = 16 << 10;

}  // namespace

std::vector<std::string> sandbox_arguments(const std::string& bubblewrap, const SandboxLimits& limits,
                                           const std::vector<std::string>& read_only) {
  std::vector<std::string> all = {bubblewrap,          "--unshare-user",
                                  "--disable-userns",  "--unshare-ipc",
                                  "--unshare-pid",     "--unshare-net",
                                  "--unshare-uts",     "--unshare-cgroup-try",
                                  "--hostname",        "sandbox",
                                  "--die-with-parent", "--new-session",
                                  "--cap-drop",        "ALL"};
  const auto add = [&all](std::initializer_list<std::string> more) { all.insert(all.end(), more); };
  // First: what is bound may lie below it.
  add({"--size", std::to_string(limits.folder_bytes), "--tmpfs", "/tmp"});
  for (const std::string& path : read_only) add({"--ro-bind", path, path});
  // The loader's own path is part of every program. With all of /usr it is there.
  const bool has_loader = std::find(read_only.begin(), read_only.end(), "/usr") != read_only.end();
  for (const std::string loader : {"/usr/lib64/ld-linux-x86-64.so.2", "/usr/lib/ld-linux-aarch64.so.1"}) {
    if (!has_loader) add({"--ro-bind-try", loader, loader});
  }
  for (const std::string name : {"lib", "lib64"}) {
    std::error_code ignored;
    if (fs::is_symlink("/" + name, ignored)) {
      add({"--symlink", "usr/" + name, "/" + name});
    } else {
      add({"--ro-bind-try", "/" + name, "/" + name});
    }
  }
  for (const std::string device : {"/dev/null", "/dev/zero", "/dev/urandom"}) add({"--dev-bind", device, device});
  add({"--chdir", "/tmp", "--remount-ro", "/"});
  return all;
}

Result<ProgramRun> run_in_sandbox(const SandboxLimits& limits, const std::vector<std::string>& arguments,
                                  std::string_view input, const ToolContext& context) {
  RunOptions run;
  run.input = input;
  run.max_output_bytes = limits.output_bytes;
  run.max_error_bytes = kMaxErrorBytes;
  run.deadline = std::min(context.deadline, std::chrono::steady_clock::now() + limits.time);
  run.is_cancelled = context.is_cancelled;
  run.child.folder = "/";
  run.child.environment = {{"PATH=/usr/bin", "HOME=/tmp", "LANG=C.UTF-8"}};
  // Limits of processes do not hold for root, in no namespace.
  if (::geteuid() == 0) run.child.user = kNobody;
  return run_program(arguments, run);
}

ToolResult sandbox_result(const ProgramRun& run, const SandboxLimits& limits,
                          std::chrono::steady_clock::time_point began) {
  ToolResult result{run.output, true, true};
  const auto add_line = [&result](const std::string& line) {
    if (!result.text.empty() && result.text.back() != '\n') result.text += '\n';
    result.text += line;
  };
  if (!run.error.empty()) add_line(run.error);
  switch (run.end) {
    case ProgramRun::End::deadline: add_line("[ended: no time left]"); break;
    case ProgramRun::End::cancelled: add_line("[ended: cancelled]"); break;
    case ProgramRun::End::output_limit:
      add_line("[ended: more than " + std::to_string(limits.output_bytes) + " bytes of output]");
      break;
    case ProgramRun::End::exited:
      result.is_error = !run.exit.is_success();
      if (result.is_error) add_line("[" + describe(run.exit) + "]");
      if (result.text.empty()) result.text = "[no output]";
  }
  Json detail;
  detail["exit"] = describe(run.exit);
  detail["milliseconds"] =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began).count();
  result.detail = to_text(detail);
  return result;
}

}  // namespace chimere::tools
