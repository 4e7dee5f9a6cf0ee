// tls_test.cpp  The client believes a certificate only when it can check it, and only for the name it names.
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>

#include <cstdio>

#include "base/scratch_for_test.h"
#include "web/http_client.h"
#include "web/server_for_test.h"

namespace chimere::web {
namespace {

// A certificate for page.example that nobody but us signed, made for this run.
struct OwnCertificate {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();

  OwnCertificate() {
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_EXTENSION* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:page.example");
    X509_add_ext(certificate, names, -1);
    X509_EXTENSION_free(names);
    X509_sign(certificate, key, EVP_sha256());
  }
  ~OwnCertificate() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  void write(const std::string& path) const {
    std::FILE* file = std::fopen(path.c_str(), "w");
    PEM_write_X509(file, certificate);
    std::fclose(file);
  }
};

// Takes a few connections one after the other and answers with "private" inside TLS, or goes away in silence.
class TlsServer {
 public:
  TlsServer(const OwnCertificate& own, int n_connections, bool answers)
      : answers_(answers), context_(SSL_CTX_new(TLS_server_method())) {
    SSL_CTX_use_certificate(context_, own.certificate);
    SSL_CTX_use_PrivateKey(context_, own.key);
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 8) != 0)
      std::abort();
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this, n_connections] {
      sigset_t pipes;  // ours; the client has to see to its own
      sigemptyset(&pipes);
      sigaddset(&pipes, SIGPIPE);
      pthread_sigmask(SIG_BLOCK, &pipes, nullptr);
      for (int i = 0; i < n_connections; ++i) serve(::accept(listener_, nullptr, nullptr));
    });
  }
  ~TlsServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    SSL_CTX_free(context_);
  }
  uint16_t port = 0;

 private:
  void serve(int socket) {
    if (socket < 0) return;
    SSL* tls = SSL_new(context_);
    SSL_set_fd(tls, socket);
    char head[4096];
    if (SSL_accept(tls) == 1 && answers_ && SSL_read(tls, head, sizeof head) > 0) {
      const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nprivate";
      SSL_write(tls, answer.data(), static_cast<int>(answer.size()));
      SSL_shutdown(tls);
    }
    SSL_free(tls);
    ::close(socket);
  }

  const bool answers_;
  SSL_CTX* context_;
  int listener_ = -1;
  std::thread thread_;
};

TEST(Tls, ACertificateIsBelievedOnlyWhenItCanBeChecked) {
  const OwnCertificate own;
  const std::string ca_file = chimere::fixture::scratch_folder() / "ca.pem";
  own.write(ca_file);
  const TlsServer server(own, 3, true);
  HttpClient::Options options;
  options.resolver = [](const std::string&) -> Result<std::vector<Address>> {
    return std::vector<Address>{*parse_address("127.0.0.1")};
  };
  HttpRequest request;
  request.limits.total = std::chrono::milliseconds(5000);
  request.url = "https://page.example:" + std::to_string(server.port) + "/";
  const auto unknown = HttpClient(options).exchange(request);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::io);

  options.ca_file = ca_file;
  const auto known = HttpClient(options).exchange(request);
  ASSERT_TRUE(known) << known.error().message;
  EXPECT_EQ(known->body, "private");

  request.url = "https://other.example:" + std::to_string(server.port) + "/";
  const auto other_name = HttpClient(options).exchange(request);
  ASSERT_FALSE(other_name);
  EXPECT_EQ(other_name.error().code, Code::io);
}

// Writing into a connection that is gone is an error like any other, and no signal that ends the process.
TEST(Tls, AServerThatGoesAwayIsAnError) {
  const OwnCertificate own;
  const std::string ca_file = chimere::fixture::scratch_folder() / "ca.pem";
  own.write(ca_file);
  const TlsServer server(own, 10, false);
  HttpClient::Options options;
  options.ca_file = ca_file;
  options.resolver = [](const std::string&) -> Result<std::vector<Address>> {
    return std::vector<Address>{*parse_address("127.0.0.1")};
  };
  HttpRequest request;
  request.limits.total = std::chrono::milliseconds(5000);
  request.method = "POST";
  request.url = "https://page.example:" + std::to_string(server.port) + "/";
  request.body = std::string(20'000'000, 'x');
  for (int i = 0; i < 10; ++i) {
    const auto answer = HttpClient(options).exchange(request);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::io) << answer.error().message;
  }
}

}  // namespace
}  // namespace chimere::web
