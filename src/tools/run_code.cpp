#include "tools/run_code.h"

#include <filesystem>

#include "base/platform/child_process.h"
#include "tools/arguments.h"

namespace chimere::tools {
namespace {

namespace fs = std::filesystem;

// Sets the limits from within, where the number of processes is counted for this sandbox alone, and reads the program.
// The value of an expression on its last line is printed, as at a prompt: models expect it.
constexpr const char* kPrelude = R"python(
import sys
import resource as r
_, memory, processes, seconds, size = sys.argv
code = sys.stdin.buffer.read().decode('utf-8', 'replace')
for name, limit in (('AS', memory), ('NPROC', processes), ('CPU', seconds), ('FSIZE', size), ('NOFILE', 64), ('CORE', 0)):
    r.setrlimit(getattr(r, 'RLIMIT_' + name), (int(limit), int(limit)))
del sys.argv[1:]
import ast, linecache, traceback
linecache.cache['<code>'] = (len(code), None, code.splitlines(True), '<code>')
names = {'__name__': '__main__', '__builtins__': __builtins__}
try:
    tree = ast.parse(code, '<code>')
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, '<code>', 'exec'), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), '<code>', 'eval'), names)
        if value is not None:
            print(repr(value))
except SystemExit:
    raise
except BaseException as problem:
    sys.stdout.flush()
    problem.__traceback__ = problem.__traceback__ and problem.__traceback__.tb_next
    traceback.print_exception(problem)
    sys.exit(1)
)python";

// Where the interpreter and what it loads lie.
struct Interpreter {
  std::string program;
  std::vector<std::string> folders;
};

Result<Interpreter> find_interpreter(const RunCodeOptions& options) {
  if (find_program(options.python).empty()) {
    return Error{Code::unsupported, options.python + " is not there (Debian package python3)"};
  }
  RunOptions limits;
  limits.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  limits.child.environment = {{"PATH=/usr/bin:/bin"}};
  TRY_ASSIGN(const ProgramRun run,
             run_program({options.python, "-I", "-S", "-c",
                          "import os, sys, sysconfig as s\n"
                          "print(os.path.realpath(sys.executable), s.get_path('stdlib'), s.get_path('platstdlib'), "
                          "'/usr/lib/' + (s.get_config_var('MULTIARCH') or '.no'), sep='\\n')"},
                         limits));
  std::vector<std::string> lines;
  for (size_t begin = 0, end; (end = run.output.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(run.output.substr(begin, end - begin));
  }
  if (!run.exit.is_success() || lines.size() != 4) {
    return Error{Code::unsupported, options.python + " does not say where its library is: " + describe(run.exit)};
  }
  Interpreter found{lines[0], {lines[1]}};
  if (lines[2] != lines[1]) found.folders.push_back(lines[2]);
  // Shared libraries: Debian's folder of the machine's kind, or else the one folder that other systems have.
  found.folders.push_back(fs::is_directory(lines[3]) ? lines[3] : "/usr/lib64");
  return Result<Interpreter>{std::move(found)};
}

// What runs a program that comes by standard input, within limits that it can not lift.
std::vector<std::string> python_arguments(const RunCodeOptions& options, const Interpreter& interpreter) {
  std::vector<std::string> seen = interpreter.folders;
  seen.push_back(interpreter.program);
  const SandboxLimits& limits = options.limits;
  std::vector<std::string> all = sandbox_arguments(options.bubblewrap, limits, seen);
  const int64_t seconds = std::chrono::ceil<std::chrono::seconds>(limits.time).count() + 1;
  all.insert(all.end(),
             {"--", interpreter.program, "-I", "-S", "-X", "utf8", "-c", kPrelude, std::to_string(limits.memory_bytes),
              std::to_string(limits.processes), std::to_string(seconds), std::to_string(limits.folder_bytes)});
  return all;
}

class RunCode : public Tool {
 public:
  RunCode(RunCodeOptions options, const Interpreter& interpreter)
      : options_(std::move(options)), arguments_(python_arguments(options_, interpreter)) {
    spec_.name = "run_code";
    spec_.description =
        "Runs a Python 3 program with the standard library and returns what it prints, and the value of an expression "
        "on "
        "its last line. No network, no files but /tmp, which is empty at the start; at most " +
        std::to_string(std::chrono::ceil<std::chrono::seconds>(options_.limits.time).count()) + " seconds.";
    spec_.parameters =
        R"json({"type":"object","properties":{"code":{"type":"string","description":"the whole program"}},)json"
        R"json("required":["code"],"additionalProperties":false})json";
  }

  const ToolSpec& spec() const override { return spec_; }

  ToolResult run(const std::string& arguments, const ToolContext& context) override {
    const auto given = read_arguments(arguments);
    if (!given) return {given.error().message, true};
    const std::string code = text_argument(*given, "code");
    if (code.size() > kMaxCodeBytes) {
      return {
          "code: expected at most " + std::to_string(kMaxCodeBytes) + " bytes, found " + std::to_string(code.size()),
          true};
    }
    const auto began = std::chrono::steady_clock::now();
    const auto run = run_in_sandbox(options_.limits, arguments_, code, context);
    if (!run) return {"run_code: " + run.error().message, true};
    return sandbox_result(*run, options_.limits, began);
  }

 private:
  RunCodeOptions options_;
  std::vector<std::string> arguments_;
  ToolSpec spec_;
};

}  // namespace

Status run_code_availability(const RunCodeOptions& options) {
  const auto tool = make_run_code(options);
  return tool ? Status(Ok{}) : Status(tool.error());
}

Result<std::shared_ptr<Tool>> make_run_code(const RunCodeOptions& options) {
  const auto refused = [](const std::string& why) {
    return Error{Code::unsupported, "run_code is not offered: " + why};
  };
  if (find_program(options.bubblewrap).empty()) {
    return refused(options.bubblewrap + " is not there (Debian package bubblewrap)");
  }
  const auto interpreter = find_interpreter(options);
  if (!interpreter) return refused(interpreter.error().message);
  auto tool = std::make_shared<RunCode>(options, *interpreter);
  const ToolResult tried = tool->run(R"json({"code":"print(6 * 7)"})json", {});
  if (tried.is_error || tried.text != "42\n") return refused("a sandbox cannot be made here: " + tried.text);
  return Result<std::shared_ptr<Tool>>{std::move(tool)};
}

}  // namespace chimere::tools
