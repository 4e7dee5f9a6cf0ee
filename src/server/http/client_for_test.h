// client_for_test.h  A small HTTP client on plain sockets, which can also send what no client should.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace chimere::server {

struct ClientResponse {
  int status = 0;  // 0: the connection ended before a response
  std::string head;
  std::string body;  // chunks joined

  std::string header(std::string_view name) const {
    const size_t at = head.find("\r\n" + std::string(name) + ": ");
    if (at == std::string::npos) return {};
    const size_t begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

class Client {
 public:
  // `receive_bytes`: what the system may keep for a client that does not read; 0: as it likes.
  explicit Client(uint16_t port, int receive_bytes = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_bytes > 0) setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval limit{30, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  int socket() const { return socket_; }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  // Reads on until the received text that was not taken yet contains `mark`; false when the connection ends first.
  bool read_until(std::string_view mark) {
    while (received_.find(mark) == std::string::npos) {
      if (!receive()) return false;
    }
    return true;
  }
  const std::string& received() const { return received_; }

  ClientResponse read_response() {
    ClientResponse response;
    if (!read_until("\r\n\r\n")) return response;
    response.head = take(received_.find("\r\n\r\n") + 4);
    response.status = std::atoi(response.head.c_str() + 9);
    if (const std::string length = response.header("Content-Length"); !length.empty()) {
      const size_t n = std::strtoul(length.c_str(), nullptr, 10);
      while (received_.size() < n && receive()) {
      }
      response.body = take(n);
    } else if (response.header("Transfer-Encoding") == "chunked") {
      while (read_until("\r\n")) {
        const size_t n = std::strtoul(received_.c_str(), nullptr, 16);
        take(received_.find("\r\n") + 2);
        while (received_.size() < n + 2 && receive()) {
        }
        response.body += take(n);
        take(2);
        if (n == 0) break;
      }
    } else if (response.status != 100) {
      while (receive()) {
      }
      response.body = take(received_.size());
    }
    return response;
  }

  ClientResponse request(std::string_view method, std::string_view path, std::string_view body = {},
                         std::string_view headers = {}) {
    std::string text = std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n";
    text += headers;
    if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    text += "\r\n";
    text += body;
    send(text);
    return read_response();
  }

 private:
  bool receive() {
    char bytes[4096];
    const ssize_t n = ::recv(socket_, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    received_.append(bytes, static_cast<size_t>(n));
    return true;
  }
  std::string take(size_t n) {
    std::string taken = received_.substr(0, n);
    received_.erase(0, n);
    return taken;
  }

  int socket_;
  bool connected_ = false;
  std::string received_;
};

}  // namespace chimere::server
