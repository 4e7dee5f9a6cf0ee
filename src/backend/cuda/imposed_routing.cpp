#include "backend/cuda/imposed_routing.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace chimere::cuda {

Result<std::unique_ptr<ImposedChoices>> ImposedChoices::create(const Program& program, float skew, Ledger& ledger,
                                                               const Stream& stream) {
  constexpr uint32_t kApart = 1'000'003;  // draws of a layer before those of the next
  std::vector<const op::MoeFfn*> mixtures;
  std::vector<float> log_weights;
  std::vector<uint32_t> n_drawn;
  std::mt19937 random(1);
  for (const Op& op : program.ops) {
    const auto* moe = std::get_if<op::MoeFfn>(&op);
    if (!moe) continue;
    std::vector<float> of_layer(static_cast<size_t>(moe->n_experts));
    for (size_t r = 0; r < of_layer.size(); ++r) of_layer[r] = -skew * std::log(static_cast<float>(r + 1));
    std::shuffle(of_layer.begin(), of_layer.end(), random);
    log_weights.insert(log_weights.end(), of_layer.begin(), of_layer.end());
    n_drawn.resize(n_drawn.size() + kMoeRows, static_cast<uint32_t>(mixtures.size()) * kApart);
    mixtures.push_back(moe);
  }
  std::unique_ptr<ImposedChoices> made(new ImposedChoices());
  TRY_ASSIGN(made->log_weights_, DeviceBuffer<float>::create(ledger, Purpose::scratch, log_weights.size()));
  TRY_ASSIGN(made->n_drawn_, DeviceBuffer<uint32_t>::create(ledger, Purpose::scratch, n_drawn.size()));
  TRY(made->log_weights_.write(stream, log_weights));
  TRY(made->n_drawn_.write(stream, n_drawn));
  TRY(stream.synchronize());
  const float* weights = made->log_weights_.data();
  uint32_t* drawn = made->n_drawn_.data();
  for (const op::MoeFfn* mixture : mixtures) {
    made->layers_[mixture->up] = {weights, drawn};
    weights += mixture->n_experts;
    drawn += kMoeRows;
  }
  return Result<std::unique_ptr<ImposedChoices>>{std::move(made)};
}

}  // namespace chimere::cuda
