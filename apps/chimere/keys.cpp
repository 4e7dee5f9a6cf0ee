// keys.cpp  `chimere keys NAME`: makes an API key and the line that admits it.
#include <cstdio>
#include <iostream>

#include "commands.h"
#include "common.h"
#include "server/http/api_keys.h"

namespace chimere::apps {
namespace {

Status keys(const std::string& name, bool from_stdin) {
  std::string key;
  if (from_stdin) {
    std::getline(std::cin, key);
  } else {
    key = server::random_key();
  }
  server::ApiKeys check;
  TRY(check.add(name, key));
  // The line alone on stdout, so that it can be appended to the file.
  if (!from_stdin) std::fprintf(stderr, "The key, which is shown only now: %s\n", key.c_str());
  std::printf("%s:%s\n", name.c_str(), server::sha256_hex(key).c_str());
  return Ok{};
}

}  // namespace

void add_keys(CLI::App& app, Outcome& outcome) {
  auto name = std::make_shared<std::string>();
  auto from_stdin = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("keys", "Make an API key, and its line for `serve --api-keys-file`");
  command->add_option("NAME", *name, "who it is for; the log says this name")->required();
  command->add_flag("--stdin", *from_stdin, "take the key from the standard input instead of making one");
  command->callback([name, from_stdin, &outcome] {
    if (Status s = keys(*name, *from_stdin); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
