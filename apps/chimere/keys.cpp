// keys.cpp  `chimere keys NAME`: makes an API key and the line that admits it; `chimere keys --list FILE`: those of a
// file, and the tokens they have used.
#include <cinttypes>
#include <cstdio>
#include <iostream>

#include "commands.h"
#include "common.h"
#include "data_folder.h"
#include "server/http/api_keys.h"
#include "server/http/key_usage.h"

namespace chimere::apps {
namespace {

struct KeyOptions {
  std::string name;
  std::string list;  // file
  bool from_stdin = false;
  bool is_admin = false;
  uint64_t tokens_per_day = 0;
};

Status make_key(const KeyOptions& o) {
  std::string key;
  if (o.from_stdin) {
    std::getline(std::cin, key);
  } else {
    key = server::random_key();
  }
  server::ApiKeys check;
  TRY(check.add(o.name, key));
  // The line alone on stdout, so that it can be appended to the file.
  if (!o.from_stdin) std::fprintf(stderr, "The key, which is shown only now: %s\n", key.c_str());
  std::printf("%s\n", server::key_line({o.name, server::sha256_hex(key), o.tokens_per_day, o.is_admin}).c_str());
  return Ok{};
}

void print_key(const std::string& name, const server::ApiKey* key, const server::KeyUsage::Counts& counts) {
  const std::string budget = key && key->tokens_per_day > 0 ? std::to_string(key->tokens_per_day) : "-";
  std::printf("%-24s %-6s %14s %14" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %14" PRIu64 "\n", name.c_str(),
              key && key->is_admin ? "admin" : "", budget.c_str(), counts.today.computed(), counts.today.prompt,
              counts.today.cached, counts.today.generated, counts.all.computed());
}

// Keys of the file, and whoever else has used something: those of --api-key, and the browsers of --lan.
Status list_keys(const std::string& file) {
  server::ApiKeys keys;
  TRY(keys.add_file(file));
  const server::KeyUsage usage(key_usage_file());
  std::printf("%-24s %-6s %14s %14s %10s %10s %10s %14s\n", "name", "", "tokens a day", "counted today", "prompt",
              "cached", "generated", "counted in all");
  for (const server::ApiKey& key : keys.all()) print_key(key.name, &key, usage.of(key.name));
  for (const auto& [name, counts] : usage.all()) {
    if (!keys.named(name)) print_key(name.empty() ? "(without a key)" : name, nullptr, counts);
  }
  return Ok{};
}

}  // namespace

void add_keys(CLI::App& app, Outcome& outcome) {
  auto o = std::make_shared<KeyOptions>();
  CLI::App* command = app.add_subcommand("keys", "Make an API key, and its line for `serve --api-keys-file`");
  auto* name = command->add_option("NAME", o->name, "who it is for; the log says this name");
  command->add_flag("--stdin", o->from_stdin, "take the key from the standard input instead of making one");
  command
      ->add_option("--tokens-per-day", o->tokens_per_day,
                   "tokens, computed of prompts and generated, that it may use a day (UTC); else any number")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 60));
  command->add_flag("--admin", o->is_admin, "it sees what all keys use, and may unload models in use");
  command->add_option("--list", o->list, "show the keys of this file instead, with the tokens they have used")
      ->excludes(name);
  command->callback([o, &outcome] {
    Status done = Ok{};
    if (!o->list.empty()) {
      done = list_keys(o->list);
    } else if (o->name.empty()) {
      done = Error{Code::invalid_argument, "keys: expected NAME, whose key it is, or --list FILE"};
    } else {
      done = make_key(*o);
    }
    if (!done) outcome.code = fail(done.error());
  });
}

}  // namespace chimere::apps
