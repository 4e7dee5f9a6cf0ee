// lan.cpp  Addresses with a code in them, as text and as a QR code.
#include "lan.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/platform/lan_address.h"
#include "base/platform/private_file.h"
#include "data_folder.h"
#include "terminal/qr_code.h"

namespace chimere::apps {
namespace {

// The page takes what stands behind '#', which browsers send to nobody.
std::string with_code(const std::string& host, const server::Server& server, const std::string& code) {
  const std::string url = server.url();
  return url.substr(0, url.find("://") + 3) + host + ":" + std::to_string(server.port()) + "/#pair=" + code;
}

void show(const std::string& address) {
  std::printf("On this network, for one browser:  %s\n\n", address.c_str());
  if (const auto code = qr_code(address)) std::printf("%s\n", drawn(*code, isatty(STDOUT_FILENO) != 0).c_str());
  std::fflush(stdout);
}

}  // namespace

Status open_to_lan(const LanOptions& options, server::ServerConfig& config) {
  if (!options.is_on) {
    if (!options.forget_browsers) return Ok{};
    return Error{Code::invalid_argument, "--forget-browsers: expected --lan beside it"};
  }
  if (!server::is_loopback(config.http.host)) {
    return Error{Code::invalid_argument, "--lan: expected no --host beside it: it listens on every address"};
  }
  if (config.keys.named(server::Pairing::name())) {
    return Error{Code::invalid_argument, "--lan: expected no key of the name '" + server::Pairing::name() +
                                             "', which is that of the browsers it lets in"};
  }
  if (lan_address().empty()) {
    return Error{Code::not_found, "--lan: expected an address beyond this machine, found no network"};
  }
  std::string file = data_folder();
  if (file.empty()) {
    spdlog::warn("there is no data folder: browsers that are let in are forgotten when the server ends");
  } else {
    TRY(make_private_folders(file));
    file += "/paired-browsers";
    std::error_code error;
    if (options.forget_browsers) std::filesystem::remove(file, error);
    if (error) return Error{Code::io, file + ": can not be removed: " + error.message()};
  }
  TRY_ASSIGN(config.pairing, server::Pairing::open(file));
  if (config.pairing->n_damaged() > 0) {
    spdlog::warn("{}: {} lines are no keys and were passed over", file, config.pairing->n_damaged());
  }
  config.http.host = "0.0.0.0";
  return Ok{};
}

void show_invitation(server::Pairing& pairing, const server::Server& server) {
  const auto next = [&pairing, &server] { show(with_code(lan_address(), server, pairing.invite())); };
  pairing.on_accepted([next] {
    std::printf("\nA browser was let in. The next address is for another one.\n\n");
    next();
  });
  next();
}

std::string page_address(server::Pairing* pairing, const server::Server& server) {
  return pairing ? with_code("127.0.0.1", server, pairing->invite()) : server.url();
}

}  // namespace chimere::apps
