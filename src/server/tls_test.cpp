// tls_test.cpp  HTTPS with a certificate made for the test, and certificates that can not be used.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstdio>
#include <filesystem>

#include "server/http/http_server.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

// A self-signed certificate for an hour, and its key.
void write_certificate(const std::string& certificate_path, const std::string& key_path) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  ASSERT_NE(key, nullptr);
  X509* certificate = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  ASSERT_GT(X509_sign(certificate, key, EVP_sha256()), 0);
  std::FILE* file = std::fopen(certificate_path.c_str(), "wb");
  PEM_write_X509(file, certificate);
  std::fclose(file);
  file = std::fopen(key_path.c_str(), "wb");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

// What the server answers to `text` over TLS, until it closes or `end` has come.
std::string ask(uint16_t port, const std::string& text, const std::string& end) {
  Client plain(port);
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, plain.socket());
  std::string answer;
  if (SSL_connect(ssl) == 1 && SSL_write(ssl, text.data(), static_cast<int>(text.size())) > 0) {
    char bytes[4096];
    while (answer.find(end) == std::string::npos) {
      const int n = SSL_read(ssl, bytes, sizeof bytes);
      if (n <= 0) break;
      answer.append(bytes, static_cast<size_t>(n));
    }
  }
  SSL_free(ssl);
  SSL_CTX_free(context);
  return answer;
}

class Tls : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("chimere_tls_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    certificate_ = (folder_ / "certificate.pem").string();
    key_ = (folder_ / "key.pem").string();
    write_certificate(certificate_, key_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  std::string certificate_, key_;
};

TEST_F(Tls, ServesWholeAndStreamedAnswers) {
  ServerForTest server;
  server.config.http.tls_certificate = certificate_;
  server.config.http.tls_key = key_;
  server.start();
  EXPECT_EQ(server.server->url().rfind("https://", 0), 0u);
  const std::string health = ask(server.port(), "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", "}");
  EXPECT_EQ(health.rfind("HTTP/1.1 200 OK", 0), 0u) << health;
  const std::string body = chat_body(R"("stream":true,"max_tokens":30)");
  const std::string request = post_text("/v1/chat/completions", body);
  // Two on one connection: reading ahead for the first must not lose the second.
  const std::string last = post_text("/v1/chat/completions", body, "Connection: close\r\n");
  const std::string streams = ask(server.port(), request + last, "\nnever");
  size_t answers = 0;
  for (size_t at = streams.find("data: [DONE]"); at != std::string::npos; at = streams.find("data: [DONE]", at + 1)) {
    ++answers;
  }
  EXPECT_EQ(answers, 2u) << streams;
}

TEST_F(Tls, PlainTextIsNotAnswered) {
  ServerForTest server;
  server.config.http.tls_certificate = certificate_;
  server.config.http.tls_key = key_;
  server.start();
  Client client(server.port());
  EXPECT_NE(client.request("GET", "/health").status, 200);
}

TEST_F(Tls, SaysWhatIsWrongWithTheFiles) {
  HttpConfig config;
  config.port = 0;
  config.tls_certificate = certificate_;
  for (const std::string& key : {std::string(), certificate_, std::string("/nonexistent")}) {
    config.tls_key = key;
    const Status status = check_address(config);
    ASSERT_FALSE(status) << key;
    EXPECT_NE(status.error().message.find("private key"), std::string::npos) << status.error().message;
  }
  config.tls_key = key_;
  EXPECT_TRUE(check_address(config));
  config.tls_certificate = key_;
  const Status status = check_address(config);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("certificate chain"), std::string::npos) << status.error().message;
}

}  // namespace
}  // namespace chimere::server
