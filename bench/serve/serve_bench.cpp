// serve_bench.cpp  What the way over HTTP costs: tokens a second of `chimere serve`, against those of the bare engine
// with the very same request, and the memory of idle connections.
//
//   serve_bench CHIMERE MODEL.gguf [ROUNDS] [TOKENS] [PORT]
//
// The server computes with one thread; the client is one thread on the last core. Both sides take turns, because
// machines are shared; the best round of each is the one that was disturbed least. Greedy, a prompt of token ids; both
// sides draw the same tokens, or nothing is said.
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/platform/process.h"
#include "engine/engine.h"
#include "orchestrator/chat_model.h"

namespace {

using namespace chimere;
using Clock = std::chrono::steady_clock;

constexpr int kPromptTokens = 32;
constexpr int kIdleConnections = 1000;
constexpr int kStreams = 16;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "serve_bench: %s\n", what.c_str());
  std::exit(1);
}

struct Rate {
  int tokens = 0;
  double per_second = 0;
};

// Different for each stream, so that no prefix cache helps one side more than the other.
std::vector<int32_t> prompt_ids(int stream) {
  std::vector<int32_t> ids;
  for (int i = 0; i < kPromptTokens; ++i) ids.push_back(300 + (i * 37 + stream * 101) % 500);
  return ids;
}

class ServerProcess {
 public:
  ServerProcess(const std::string& program, const std::string& model, int port) {
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever ends the benchmark, no server stays on the port
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    const std::string port_text = std::to_string(port);
    execl(program.c_str(), program.c_str(), "serve", model.c_str(), "--port", port_text.c_str(), "-t", "1",
          "--parallel", "16", "--backend", "cpu", nullptr);
    _exit(127);
  }
  ~ServerProcess() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }

  bool is_running() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }

  double resident_mb() const {
    std::FILE* file = std::fopen(("/proc/" + std::to_string(pid_) + "/statm").c_str(), "r");
    unsigned long long total = 0, resident = 0;
    if (!file || std::fscanf(file, "%llu %llu", &total, &resident) != 2) die("the server is gone");
    std::fclose(file);
    return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
  }

 private:
  pid_t pid_ = -1;
};

int connect_to(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

void send_all(int fd, const std::string& text) {
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) die("cannot send");
}

void wait_for(const ServerProcess& server, int port) {
  for (int i = 0; i < 600; ++i) {
    if (!server.is_running()) die("the server ended; is port " + std::to_string(port) + " taken?");
    if (const int fd = connect_to(port); fd >= 0) {
      close(fd);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  die("the server did not come up");
}

std::string completion_request(int stream, int n_tokens) {
  std::string ids;
  for (const int32_t id : prompt_ids(stream)) ids += (ids.empty() ? "" : ",") + std::to_string(id);
  const std::string body = "{\"prompt\":[" + ids + "],\"max_tokens\":" + std::to_string(n_tokens) +
                           ",\"temperature\":0,\"stream\":true,\"stream_options\":{\"include_usage\":true}}";
  return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

int completion_tokens(const std::string& answer) {
  constexpr const char* kField = "\"completion_tokens\":";
  const size_t at = answer.rfind(kField);
  if (at == std::string::npos) die("no usage in: " + answer.substr(0, 500));
  return std::atoi(answer.c_str() + at + std::char_traits<char>::length(kField));
}

Rate http_rate(int port, int streams, int n_tokens) {
  std::vector<pollfd> sockets;
  std::vector<std::string> answers(static_cast<size_t>(streams));
  for (int i = 0; i < streams; ++i) {
    const int fd = connect_to(port);
    if (fd < 0) die("cannot connect");
    sockets.push_back({fd, POLLIN, 0});
  }
  const auto start = Clock::now();
  for (int i = 0; i < streams; ++i) send_all(sockets[static_cast<size_t>(i)].fd, completion_request(i, n_tokens));
  int open = streams;
  std::vector<char> bytes(64 << 10);
  while (open > 0) {
    if (poll(sockets.data(), sockets.size(), 60'000) <= 0) die("the server says nothing");
    for (size_t i = 0; i < sockets.size(); ++i) {
      if (sockets[i].fd < 0 || (sockets[i].revents & (POLLIN | POLLHUP)) == 0) continue;
      const ssize_t n = read(sockets[i].fd, bytes.data(), bytes.size());
      if (n <= 0) die("the server closed: " + answers[i].substr(0, 500));
      const size_t before = answers[i].size();
      answers[i].append(bytes.data(), static_cast<size_t>(n));
      if (answers[i].find("data: [DONE]", before > 20 ? before - 20 : 0) == std::string::npos) continue;
      close(sockets[i].fd);
      sockets[i].fd = -1;
      --open;
    }
  }
  const double seconds = seconds_since(start);
  int tokens = 0;
  for (const std::string& answer : answers) tokens += completion_tokens(answer);
  return {tokens, tokens / seconds};
}

Rate engine_rate(engine::Engine& engine, const orchestrator::ChatModel& model, int streams, int n_tokens) {
  orchestrator::GenerateOptions options;
  options.sampling = model.defaults.sampling;
  options.sampling.temperature = 0;
  options.max_tokens = n_tokens;
  std::vector<engine::Submitted> running;
  const auto start = Clock::now();
  for (int i = 0; i < streams; ++i) {
    engine::Request request = orchestrator::generation_request(options, model.tokenizer);
    request.prompt = prompt_ids(i);
    request.snapshot_points = {kPromptTokens - 1};  // as the service asks for a completion
    auto submitted = engine.submit(std::move(request));
    if (!submitted) die(submitted.error().message);
    running.push_back(std::move(*submitted));
  }
  int tokens = 0;
  double seconds = 0;
  // Looking now and then, so that the engine has nobody to wake: it runs as fast as it can.
  while (!running.empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (size_t i = 0; i < running.size();) {
      bool ended = false;
      while (auto event = running[i].events->take()) {
        if (event->kind == engine::Event::Kind::failed) die(event->error->message);
        if (event->kind != engine::Event::Kind::finished) continue;
        tokens += event->usage.completion_tokens;
        seconds = seconds_since(start);
        ended = true;
      }
      if (ended) running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      if (!ended) ++i;
    }
  }
  return {tokens, tokens / seconds};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void compare(engine::Engine& engine, const orchestrator::ChatModel& model, int port, int streams, int rounds,
             int n_tokens) {
  std::vector<double> bare, http, ratios;
  int n_drawn = 0;
  for (int i = 0; i <= rounds; ++i) {
    const Rate a = engine_rate(engine, model, streams, n_tokens);
    const Rate b = http_rate(port, streams, n_tokens);
    if (a.tokens != b.tokens) {
      die("not the same answers: " + std::to_string(a.tokens) + " and " + std::to_string(b.tokens) + " tokens");
    }
    n_drawn = a.tokens;
    if (i == 0) continue;  // warm-up
    bare.push_back(a.per_second);
    http.push_back(b.per_second);
    ratios.push_back(b.per_second / a.per_second);
  }
  const double best_bare = *std::max_element(bare.begin(), bare.end());
  const double best_http = *std::max_element(http.begin(), http.end());
  std::printf("| %d | %d | %.0f | %.0f | %.1f %% | %.0f | %.0f | %.1f %% |\n", streams, n_drawn, best_bare, best_http,
              100 * best_http / best_bare, median(bare), median(http), 100 * median(ratios));
  std::fflush(stdout);
}

void idle_connections(const ServerProcess& server, int port) {
  const double before = server.resident_mb();
  std::vector<int> sockets;
  char bytes[4096];
  for (int i = 0; i < kIdleConnections; ++i) {
    const int fd = connect_to(port);
    if (fd < 0) die("connection " + std::to_string(i) + " was refused");
    send_all(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    if (read(fd, bytes, sizeof bytes) <= 0) die("connection " + std::to_string(i) + " got no answer");
    sockets.push_back(fd);
  }
  const double after = server.resident_mb();
  std::printf("\n%d idle keep-alive connections: %.1f MB (%.1f before, %.1f with them)\n", kIdleConnections,
              after - before, before, after);
  for (const int fd : sockets) close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) die("usage: serve_bench CHIMERE MODEL.gguf [ROUNDS] [TOKENS] [PORT]");
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 9;
  const int n_tokens = argc > 4 ? std::atoi(argv[4]) : 256;
  const int port = argc > 5 ? std::atoi(argv[5]) : 18190;
  allow_open_files(kIdleConnections + 100);
  const ServerProcess server(argv[1], argv[2], port);
  LoadOptions options;
  options.n_threads = 1;
  options.decode_rows = kStreams;
  auto weights = models::Model::load(argv[2], models::BackendKind::cpu, options);
  if (!weights) die(weights.error().message);
  const auto model = orchestrator::ChatModel::from_model(std::move(*weights));
  if (!model) die(model.error().message);
  engine::EngineConfig config;
  config.max_running = kStreams;
  config.suppressed_ids = model->suppressed_ids();
  engine::Engine engine(*model->model, config);
  // The engine's thread is started; what follows is the client.
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(std::thread::hardware_concurrency() - 1, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
  wait_for(server, port);
  std::printf(
      "| streams | tokens | engine, best tok/s | HTTP, best tok/s | of it | engine, median | HTTP, median | median of "
      "the pairs "
      "|\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (const int streams : {1, kStreams}) compare(engine, *model, port, streams, rounds, n_tokens);
  idle_connections(server, port);
}
