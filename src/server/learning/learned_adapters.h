// learned_adapters.h  The adapters that were learned, in memory while they are in use: read beside the answers, on a worker,
// and given back when nobody's answers have them any more.
//
// They are in no list that requests can name. A request holds the ones it uses; memory is given back when the last of
// these has ended. On the I/O thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "backend/adapter.h"
#include "improve/artefact_store.h"
#include "models/adapter_library.h"
#include "server/http/workers.h"

namespace chimere::server {

class LearnedAdapters {
 public:
  // All of them outlive this, and what it has given to the workers.
  LearnedAdapters(models::AdapterLibrary& library, improve::ArtefactStore& store, Workers& workers)
      : library_(library), store_(store), workers_(workers) {}

  // Null: it is not read yet, and will be, or can not be.
  std::shared_ptr<const Adapter> find(const std::string& artefact);
  // About once a second: what has come into use is read, the newest first, and what is not in use any more goes.
  void tick();

  size_t n_held() const { return held_.size(); }

 private:
  using Loaded = std::shared_ptr<const Adapter>;
  void look_at_manifest();
  void read_next();

  models::AdapterLibrary& library_;
  improve::ArtefactStore& store_;
  Workers& workers_;
  std::shared_ptr<const improve::Manifest> manifest_;
  std::vector<std::string> wanted_;     // in use, and not read: the last one is next
  std::map<std::string, Loaded> held_;  // by artefact
  std::set<std::string> in_use_, broken_;
  std::string reading_;  // artefact; empty: none is being read
  std::unique_ptr<orchestrator::ServiceJob<Loaded>> job_;
};

}  // namespace chimere::server
