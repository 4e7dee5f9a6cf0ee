#include "backend/cuda/profile.h"

#include <algorithm>
#include <array>
#include <functional>

#include "backend/cuda/measure.h"

namespace chimere::cuda {

Status profile_pass(const Stream& stream, const ProfiledPass& pass, int repeats, std::vector<FamilyTime>& times) {
  const Lowering& lowering = pass.lowering;
  const PassShape& shape = pass.shape;
  using Record = std::function<Status()>;
  const auto add = [&](const char* name, const Record& record) -> Status {
    TRY_ASSIGN(const GraphTime time, time_graph(stream, repeats, record));
    if (time.n_nodes > 0) times.push_back({name, time.n_nodes, time.seconds});
    return Ok{};
  };
  // What `both` has more than `beside`, before or behind which it stands in a step: much of it is hidden there.
  const auto add_beside = [&](const char* name, const Record& beside, const Record& both) -> Status {
    TRY_ASSIGN(const GraphTime alone, time_graph(stream, repeats, beside));
    TRY_ASSIGN(const GraphTime together, time_graph(stream, repeats, both));
    times.push_back({name, together.n_nodes - alone.n_nodes, std::max(0.0, together.seconds - alone.seconds)});
    return Ok{};
  };
  const Record head = [&]() -> Status {
    if (!shape.logits) return Ok{};
    return lowering.head(stream, shape, 0, std::min(lowering.head_rows(), shape.batch.n_logit_rows));
  };

  for (const NamedFamily& f : kFamilies) {
    TRY(add(f.name, [&] { return lowering.family(stream, shape, f.family); }));
  }
  TRY(add("head", head));
  if (shape.is_decode) {
    TRY(pass.batch.offer(stream));
    const Record embed = [&] { return lowering.family(stream, shape, Family::embed); };
    TRY(add_beside("fetch", embed, [&]() -> Status {
      TRY(fetch(stream, std::array{pass.batch.fetch()}));
      return embed();
    }));
  }
  if (pass.drawing) {
    TRY(add_beside("drawing", head, [&]() -> Status {
      TRY(head());
      return pass.drawing->launch(stream, lowering.logits(), pass.draws, 0, pass.draws.n_rows);
    }));
  }
  TRY_ASSIGN(const GraphTime all, time_graph(stream, repeats, [&]() -> Status {
               TRY(lowering.body(stream, shape));
               return head();
             }));
  times.push_back({"submission of all", 1, all.submit_seconds});
  times.push_back({"all together", all.n_nodes, all.seconds});
  return Ok{};
}

}  // namespace chimere::cuda
