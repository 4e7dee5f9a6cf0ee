// server_for_test.h  A web server on loopback whose answers a test writes byte by byte, good or bad.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace chimere::web::fixture {

// What a client asked for, as it came.
struct Asked {
  std::string head;  // with the empty line
  std::string body;
  std::string method, target;
};

// One connection of a client; the handler writes what it likes.
class Peer {
 public:
  explicit Peer(int socket) : socket_(socket) {}
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // True when the client has gone.
  bool is_gone() {
    char byte = 0;
    return ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }
  bool answer(std::string_view type, std::string_view body, std::string_view more_headers = "",
              std::string_view status = "200 OK") {
    return send("HTTP/1.1 " + std::string(status) + "\r\nContent-Type: " + std::string(type) +
                "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n" +
                std::string(more_headers) + "\r\n" + std::string(body));
  }
  bool redirect(std::string_view location, std::string_view status = "302 Found") {
    return answer("text/plain", "", "Location: " + std::string(location) + "\r\n", status);
  }

 private:
  int socket_;
};

class TestServer {
 public:
  using Handler = std::function<void(const Asked&, Peer&)>;

  explicit TestServer(Handler handler) : handler_(std::move(handler)), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0)
      std::abort();
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    accepter_ = std::thread([this] { accept_all(); });
  }
  ~TestServer() {
    is_stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    accepter_.join();
    for (std::thread& thread : threads_) thread.join();
    ::close(listener_);
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  uint16_t port() const { return port_; }
  std::string url(std::string_view target = "/") const {
    return "http://127.0.0.1:" + std::to_string(port_) + std::string(target);
  }
  bool is_stopping() const { return is_stopping_; }
  int n_asked() const { return n_asked_; }
  std::vector<std::string> targets() const {
    std::lock_guard lock(mutex_);
    return targets_;
  }

 private:
  void accept_all() {
    while (!is_stopping_) {
      const int socket = ::accept(listener_, nullptr, nullptr);
      if (socket < 0) break;
      threads_.emplace_back([this, socket] {
        serve(socket);
        ::close(socket);
      });
    }
  }
  void serve(int socket) {
    timeval limit{5, 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::string received;
    size_t end = std::string::npos;
    char piece[4096];
    while ((end = received.find("\r\n\r\n")) == std::string::npos) {
      const ssize_t n = ::recv(socket, piece, sizeof piece, 0);
      if (n <= 0) return;
      received.append(piece, static_cast<size_t>(n));
    }
    Asked asked;
    asked.head = received.substr(0, end + 4);
    asked.body = received.substr(end + 4);
    asked.method = asked.head.substr(0, asked.head.find(' '));
    const size_t begin = asked.method.size() + 1;
    asked.target = asked.head.substr(begin, asked.head.find(' ', begin) - begin);
    if (const size_t at = asked.head.find("Content-Length: "); at != std::string::npos) {
      const size_t length = std::strtoul(asked.head.c_str() + at + 16, nullptr, 10);
      while (asked.body.size() < length) {
        const ssize_t n = ::recv(socket, piece, sizeof piece, 0);
        if (n <= 0) return;
        asked.body.append(piece, static_cast<size_t>(n));
      }
    }
    ++n_asked_;
    {
      std::lock_guard lock(mutex_);
      targets_.push_back(asked.target);
    }
    Peer peer(socket);
    handler_(asked, peer);
  }

  Handler handler_;
  int listener_;
  uint16_t port_ = 0;
  std::atomic<bool> is_stopping_{false};
  std::atomic<int> n_asked_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> targets_;
  std::vector<std::thread> threads_;
  std::thread accepter_;
};

}  // namespace chimere::web::fixture
