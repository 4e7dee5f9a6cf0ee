// model_shelf.h  Models that are loaded when they are asked for. A thread of the shelf loads and unloads: where a model
// needs room, the one that was used least recently gives way, once its answers have ended. Requests for a model that is
// not loaded wait in line, so that nobody is passed over.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/channel.h"
#include "base/result.h"
#include "orchestrator/chat_service.h"
#include "server/shelf/model_files.h"

namespace chimere::server {

// What a model takes, or may take: weights, working memory and what its states may grow to.
struct ModelMemory {
  uint64_t ram = 0;   // bytes of this machine's
  uint64_t vram = 0;  // of the card's
};

// Of a model on this machine's memory, whose engine may fill so much with states.
ModelMemory memory_of(const orchestrator::ChatService& service, uint64_t state_bytes);

struct ShelfLimits {
  uint64_t bytes = 0;                   // of the files that are loaded at a time; 0: any
  ModelMemory memory = {};              // of the models that are; 0: any
  int count = 0;                        // of models that are; 0: any
  std::chrono::seconds idle_unload{0};  // a model that nobody asks for is unloaded after this; 0: it stays
};

class ModelShelf {
 public:
  using Clock = std::chrono::steady_clock;
  using Progress = std::function<void(uint64_t done, uint64_t total)>;
  struct Opened {
    std::unique_ptr<orchestrator::ChatService> service;
    ModelMemory memory = {};  // what it takes, now that this is known
  };
  // Both are called on the thread of the shelf. `share`: what was planned for it, within which it has to stay. One that
  // fails as exhausted on a card is tried once more with all of it.
  using Load = std::function<Result<Opened>(const ModelFile& file, const ModelMemory& share, const Progress& progress)>;
  // What a file will take, as far as its size tells.
  using Plan = std::function<ModelMemory(const ModelFile& file)>;

  // A model in memory, held by those who use it.
  struct Loaded {
    ModelFile file;
    ModelMemory memory;
    std::unique_ptr<orchestrator::ChatService> service;
    std::shared_ptr<void> attached;  // what others keep beside it and that must go before the service does
  };

  // A model stays loaded as long as someone has one. A look at it is no use of it, and keeps it no longer in the shelf.
  class Lease {
   public:
    Lease(ModelShelf& shelf, std::shared_ptr<Loaded> model, bool is_use)
        : shelf_(&shelf), model_(std::move(model)), is_use_(is_use) {}
    Lease(Lease&& other) noexcept : shelf_(other.shelf_), model_(std::move(other.model_)), is_use_(other.is_use_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    Loaded& operator*() const { return *model_; }
    Loaded* operator->() const { return model_.get(); }

   private:
    ModelShelf* shelf_;
    std::shared_ptr<Loaded> model_;
    bool is_use_;
  };
  using Ticket = Channel<Result<Lease>>;

  enum class State { unloaded, loading, loaded, failed };
  struct Listed {
    ModelFile file;
    State state = State::unloaded;
    double progress = 0;                                 // of `loading`, 0 to 1
    std::string problem;                                 // of `failed`: why it could not be loaded
    const orchestrator::ChatService* service = nullptr;  // of `loaded`; look at it now, it may go
    int users = 0;                                       // of `loaded`
    ModelMemory memory;                                  // of `loaded`
    // Of `loaded`: the file's options are others than those it was loaded with.
    bool has_new_options = false;
  };

  // `find` looks at the disk: it is asked here once, and then by the thread of the shelf, soon after somebody wanted the
  // list or a name that is not in it. Without a `plan` models are loaded whatever memory they take.
  ModelShelf(std::function<std::vector<ModelFile>()> find, Load load, ShelfLimits limits, Plan plan = {});
  // Ends every load and unloads all. No lease outlives the shelf.
  ~ModelShelf();

  // In the order of their names. `look` is called with the lock held: it must not call the shelf.
  void list(const std::function<void(const Listed&)>& look);
  std::optional<ModelFile> find(const std::string& name);
  // The model, now or later: `wake` is called when the ticket has something. Not found: the ticket has the error.
  // `keep`: how long the model stays when nobody uses it any more, from now on; without it as before.
  std::shared_ptr<Ticket> ask(const std::string& name, std::function<void()> wake,
                              std::optional<std::chrono::seconds> keep = std::nullopt);
  // The one that was asked for last among those that are loaded; none: nothing is.
  std::optional<Lease> latest();
  // A use of one that is loaded, for what outlasts the answer of somebody who has a lease of it.
  std::optional<Lease> use(const std::string& name);
  // All that are loaded now.
  std::vector<Lease> loaded();
  // As soon as its answers have ended. False: it is not loaded.
  bool unload(const std::string& name);

 private:
  struct Entry {
    std::shared_ptr<Loaded> model;
    int users = 0;
    bool is_leaving = false;  // nobody new is let in
    std::optional<std::chrono::seconds> keep = {};
    Clock::time_point last_used;
  };
  struct Waiting {
    std::string name;
    std::shared_ptr<Ticket> ticket;
    std::optional<std::chrono::seconds> keep;
  };

  void run();
  void serve_first(std::unique_lock<std::mutex>& lock);
  // What a file took when it was last loaded, or what is planned for it.
  ModelMemory expected_of(const ModelFile& file) const;
  bool make_room(std::unique_lock<std::mutex>& lock, const ModelFile& file, const ModelMemory& memory);
  bool fits(const ModelFile& file, const ModelMemory& memory) const;
  Error too_large(const ModelFile& file, const ModelMemory& memory) const;
  void refuse(std::unique_lock<std::mutex>& lock, const std::string& name, const Error& error);
  bool is_over(const Entry& entry) const;
  void take_down(std::unique_lock<std::mutex>& lock, const std::string& name);
  void drop_idle(std::unique_lock<std::mutex>& lock);
  void deliver(std::unique_lock<std::mutex>& lock, const std::string& name, const Error* error);
  std::optional<ModelFile> find_locked(const std::string& name);
  void look_again(std::unique_lock<std::mutex>& lock);
  Lease lease_of(Entry& entry, bool is_use);
  void give_back(const Loaded& model, bool is_use);

  const std::function<std::vector<ModelFile>()> find_;
  const Load load_;
  const ShelfLimits limits_;
  const Plan plan_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ModelFile> files_;
  Clock::time_point looked_;
  bool wants_look_ = false;
  std::map<std::string, Entry> entries_;         // loaded
  std::map<std::string, std::string> problems_;  // of the last try
  std::map<std::string, std::pair<ModelFile, ModelMemory>> seen_;
  std::deque<Waiting> waiting_;
  std::string loading_;  // name; empty: none
  double progress_ = 0;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace chimere::server
