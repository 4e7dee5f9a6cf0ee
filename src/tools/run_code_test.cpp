// run_code_test.cpp  What a program can do in the sandbox, and attempts to leave it.
#include "tools/run_code.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/scratch_for_test.h"
#include "text/json.h"

namespace chimere::tools {
namespace {

class RunCodeTest : public testing::Test {
 protected:
  void SetUp() override {
    static const auto kTool = make_run_code();
    if (!kTool) GTEST_SKIP() << kTool.error().message;
    tool_ = *kTool;
  }

  ToolResult run(const std::string& code, const ToolContext& context = {}) {
    return tool_->run(to_text(Json{{"code", code}}), context);
  }

  // What each of some statements comes to, in one program: the name of its exception, or "done".
  std::string attempt(const std::vector<std::string>& statements) {
    std::string code = "import os, sys, socket, ctypes, resource\nlibc = ctypes.CDLL(None, use_errno=True)\n";
    for (const std::string& statement : statements) {
      code +=
          "try:\n    " + statement + "\n    print('done')\nexcept BaseException as e:\n    print(type(e).__name__)\n";
    }
    return run(code).text;
  }

  std::shared_ptr<Tool> tool_;
};

TEST_F(RunCodeTest, GivesWhatIsPrintedAndTheLastValue) {
  const ToolResult result = run("x = 2**100\nprint('é', x)\nopen('/tmp/x', 'w').write('kept')\nx % 7");
  EXPECT_EQ(result.text, "é 1267650600228229401496703205376\n2\n");
  EXPECT_FALSE(result.is_error);
  EXPECT_TRUE(result.is_untrusted);
  EXPECT_NE(result.detail.find("\"exit\":\"exit code 0\""), std::string::npos);
  EXPECT_EQ(run("import json, math, statistics, sqlite3, decimal, random, re, datetime, os\nos.listdir('/tmp')").text,
            "[]\n");  // nothing of the run before
  EXPECT_EQ(run("None").text, "[no output]");
}

TEST_F(RunCodeTest, ErrorsShowTheProgramsLinesAlone) {
  const ToolResult failed = run("def f(x):\n    return 1 / x\nf(0)");
  EXPECT_TRUE(failed.is_error);
  EXPECT_NE(failed.text.find("line 2, in f\n    return 1 / x"), std::string::npos) << failed.text;
  EXPECT_NE(failed.text.find("ZeroDivisionError: division by zero\n[exit code 1]"), std::string::npos);
  EXPECT_EQ(failed.text.find("<string>"), std::string::npos);
  EXPECT_NE(run("if").text.find("SyntaxError"), std::string::npos);
  EXPECT_NE(run("import sys; sys.exit(3)").text.find("[exit code 3]"), std::string::npos);
}

TEST_F(RunCodeTest, EndsInTimeAndWhenItIsCancelled) {
  ToolContext late;
  late.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  const ToolResult endless = run("while True: pass", late);
  EXPECT_TRUE(endless.is_error);
  EXPECT_EQ(endless.text, "[ended: no time left]");
  ToolContext cancelled;
  int n_asked = 0;
  cancelled.is_cancelled = [&] { return ++n_asked > 3; };
  EXPECT_EQ(run("while True: pass", cancelled).text, "[ended: cancelled]");
}

TEST_F(RunCodeTest, HasNoNetwork) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  // The first reaches a loopback of the sandbox's own, where nobody listens.
  EXPECT_EQ(attempt({"socket.create_connection(('127.0.0.1', " + port + "), 1)",
                     "socket.create_connection(('8.8.8.8', 53), 1)", "socket.getaddrinfo('localhost.example', 80)",
                     "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
                     "assert [name for _, name in socket.if_nameindex()] == ['lo']"}),
            "ConnectionRefusedError\nOSError\ngaierror\nPermissionError\ndone\n");
  ::close(listener);
}

TEST_F(RunCodeTest, SeesNoFilesAndNoProcessesOfTheMachine) {
  const std::string secret = fixture::scratch_folder() / "secret";
  std::ofstream(secret) << "of the user's";
  const char* home = std::getenv("HOME");
  const std::string own = home && std::string(home) != "/tmp" ? home : "/root";
  ::setenv("CHIMERE_TEST_SECRET", "hidden", 1);
  const std::string open_files = "assert [n for n in range(3, 64) if libc.fcntl(n, 1) != -1] == []";
  EXPECT_EQ(
      attempt({"assert sorted(os.listdir('/')) == ['dev', 'lib', 'lib64', 'tmp', 'usr']",
               "assert os.listdir('/tmp') == []", "assert len(os.listdir('/usr/bin')) == 1",
               "assert not [name for name in os.environ if 'SECRET' in name]", open_files, "os.listdir('/proc')",
               "open('/etc/passwd')", "open('" + secret + "')", "os.listdir('" + own + "')"}),
      "done\ndone\ndone\ndone\ndone\nFileNotFoundError\nFileNotFoundError\nFileNotFoundError\nFileNotFoundError\n");
  ::unsetenv("CHIMERE_TEST_SECRET");
}

TEST_F(RunCodeTest, SymbolicLinksLeadNowhere) {
  const std::string secret = fixture::scratch_folder() / "secret";
  std::ofstream(secret) << "of the user's";
  EXPECT_EQ(attempt({"os.symlink('" + secret + "', '/tmp/a'); open('/tmp/a').read()",
                     "os.symlink('../../../../etc/shadow', '/tmp/b'); open('/tmp/b').read()",
                     "os.symlink('/usr/bin/x', '/tmp/c'); open('/tmp/c', 'w')"}),
            "FileNotFoundError\nFileNotFoundError\nOSError\n");
}

TEST_F(RunCodeTest, WritesNowhereElse) {
  EXPECT_EQ(attempt({"open('/x', 'w')", "open('/usr/x', 'w')", "open('/usr/bin/x', 'w')", "open('/dev/x', 'w')",
                     "open('/lib/x', 'w')", "os.chmod(sys.executable, 0o777)",
                     "os.mknod('/tmp/disk', 0o60600, os.makedev(8, 0))"}),
            "OSError\nOSError\nOSError\nOSError\nOSError\nOSError\nPermissionError\n");
}

TEST_F(RunCodeTest, GainsNoRights) {
  const std::string refused = " == -1";
  EXPECT_EQ(attempt({"assert libc.unshare(0x10000000)" + refused, "assert libc.unshare(0x00020000)" + refused,
                     "assert libc.unshare(0x40000000)" + refused,
                     "assert libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)" + refused,
                     "assert libc.mount(b'/', b'/', None, 4096 | 32, None)" + refused, "assert os.getuid() != 0",
                     "os.setuid(0)", "os.chroot('/tmp')", "resource.setrlimit(resource.RLIMIT_NPROC, (4000, 4000))",
                     "os.kill(1, 9)"}),  // its first process takes no such signal from within
            "done\ndone\ndone\ndone\ndone\ndone\nOSError\nPermissionError\nValueError\ndone\n");
}

TEST_F(RunCodeTest, AForkBombStaysSmallAndLeavesNothing) {
  const std::string marker = "chimere-bomb-" + std::to_string(::getpid());
  const ToolResult bomb = run(R"python(
import os, sys
n = 0
while True:
    try:
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, '-I', '-S', '-c', 'import time; time.sleep(600)', ')python" +
                              marker + R"python('])
        n += 1
    except OSError as e:
        print(type(e).__name__, n < 8)
        break
)python");
  EXPECT_EQ(bomb.text, "BlockingIOError True\n");
  const auto n_left = [&marker] {
    int n = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      const std::string command((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      n += command.find(marker) != std::string::npos;
    }
    return n;
  };
  for (int i = 0; i < 2000 && n_left() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(n_left(), 0);
  const ToolResult threads =
      run("import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(600,), daemon=True).start()");
  EXPECT_NE(threads.text.find("RuntimeError: can't start new thread"), std::string::npos) << threads.text;
}

TEST_F(RunCodeTest, MemoryFilesAndOutputHaveLimits) {
  EXPECT_EQ(attempt({"bytearray(2**30)", "[open(f'/tmp/{i}', 'wb').write(bytes(2**20)) for i in range(1024)]",
                     "f = open('/tmp/0', 'wb'); [f.write(bytes(2**20)) for _ in range(1024)]"}),
            "MemoryError\nOSError\nOSError\n");
  const ToolResult gigabyte = run("import sys\nfor _ in range(1024): sys.stdout.write('x' * 2**20)");
  EXPECT_TRUE(gigabyte.is_error);
  EXPECT_EQ(gigabyte.text, std::string(64 << 10, 'x') + "\n[ended: more than 65536 bytes of output]");
  EXPECT_TRUE(run("#" + std::string(kMaxCodeBytes, 'x')).is_error);
}

TEST(RunCodeAvailability, SaysWhatIsMissing) {
  RunCodeOptions options;
  options.bubblewrap = "no-such-bubblewrap";
  EXPECT_EQ(run_code_availability(options).error().message,
            "run_code is not offered: no-such-bubblewrap is not there (Debian package bubblewrap)");
  options.bubblewrap = "false";  // as a bubblewrap does that the kernel refuses a namespace
  EXPECT_FALSE(run_code_availability(options));
  options.python = "/no/python3";
  EXPECT_EQ(run_code_availability(options).error().message,
            "run_code is not offered: /no/python3 is not there (Debian package python3)");
}

}  // namespace
}  // namespace chimere::tools
