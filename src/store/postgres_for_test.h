// postgres_for_test.h  A PostgreSQL for tests: Debian's, in a folder of its own, on a socket in it. It ends with the tests.
#pragma once

#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/platform/child_process.h"

namespace chimere::fixture {

class PostgresServer {
 public:
  // The one of this process. Null: it is not installed, and `why_not` says so.
  static PostgresServer* get() {
    static const std::unique_ptr<PostgresServer> server = start();
    return server.get();
  }
  static std::string why_not() { return "PostgreSQL's server is not installed (apt install postgresql)"; }

  ~PostgresServer() {
    stop();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // A journal of its own: `name` is a schema, which is made.
  std::string url(const std::string& name) {
    sql("CREATE SCHEMA IF NOT EXISTS " + name);
    return "postgresql://chimere@/postgres?host=" + folder_.string() + "&options=-csearch_path%3D" + name;
  }
  void sql(const std::string& statement) const {
    const auto done = run_program({bin_ + "/psql", "-qAt", "-h", folder_.string(), "-U", "chimere", "-d", "postgres",
                                   "-v", "ON_ERROR_STOP=1", "-c", statement},
                                  {});
    EXPECT_TRUE(done && done->exit.is_success()) << (done ? done->error : done.error().message);
  }
  // Ends all sessions, as a server that is started again.
  void stop() {
    if (!process_) return;
    std::ifstream file(folder_ / "data/postmaster.pid");
    pid_t pid = 0;
    if (file >> pid) ::kill(pid, SIGINT);
    process_->wait(std::chrono::steady_clock::now() + kPatience);
    process_.reset();
  }
  void go_on() {
    auto started = ChildProcess::start({bin_ + "/postgres", "-D", (folder_ / "data").string(), "-k", folder_.string(),
                                        "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=8MB", "-c",
                                        "logging_collector=on", "-c", "log_directory=" + folder_.string()},
                                       {.user = user_});
    ASSERT_TRUE(started) << started.error().message;
    process_.emplace(std::move(*started));
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!is_ready()) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "the database did not come up";
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

 private:
  static constexpr std::chrono::seconds kPatience{120};

  static std::unique_ptr<PostgresServer> start() {
    std::vector<std::string> versions;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", error)) {
      if (::access((entry.path() / "bin/initdb").c_str(), X_OK) == 0) versions.push_back(entry.path() / "bin");
    }
    if (versions.empty()) return nullptr;
    std::unique_ptr<PostgresServer> server(new PostgresServer);
    server->bin_ = *std::max_element(versions.begin(), versions.end());
    // Its path is that of a socket, too, which has 107 bytes at most.
    char name[] = "/tmp/chimere-pg-XXXXXX";
    if (!::mkdtemp(name)) return nullptr;
    server->folder_ = name;
    std::filesystem::permissions(name, std::filesystem::perms::all);
    // It refuses to be root.
    const passwd* account = ::geteuid() == 0 ? ::getpwnam("postgres") : nullptr;
    if (account) server->user_ = account->pw_uid;
    RunOptions options;
    options.child.user = server->user_;
    options.child.folder = name;
    const auto made = run_program({server->bin_ + "/initdb", "-D", server->folder_ / "data", "-U", "chimere", "-A",
                                   "trust", "-E", "UTF8", "--locale=C", "--no-sync"},
                                  options);
    EXPECT_TRUE(made && made->exit.is_success()) << (made ? made->error : made.error().message);
    server->go_on();
    return server;
  }

  bool is_ready() const {
    const auto asked =
        run_program({bin_ + "/pg_isready", "-q", "-h", folder_.string(), "-U", "chimere", "-d", "postgres"}, {});
    return asked && asked->exit.is_success();
  }

  std::string bin_;
  std::filesystem::path folder_;
  std::optional<uint32_t> user_;
  std::optional<ChildProcess> process_;
};

}  // namespace chimere::fixture
