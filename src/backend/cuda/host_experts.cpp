#include "backend/cuda/host_experts.h"

#include <algorithm>
#include <string>

#include "backend/cpu/expert_bank.h"

namespace chimere::cuda {

Result<std::vector<const op::MoeFfn*>> hosted_mixtures(const Program& program, int cpu_moe) {
  std::vector<const op::MoeFfn*> mixtures;
  for (const Op& op : program.ops) {
    if (const auto* moe = std::get_if<op::MoeFfn>(&op)) mixtures.push_back(moe);
  }
  if (cpu_moe == 0) return std::vector<const op::MoeFfn*>{};
  const int found = static_cast<int>(mixtures.size());
  if (cpu_moe > found || cpu_moe < kAllMixtures || found == 0) {
    return Error{Code::invalid_argument, "experts on the CPU: expected at most " + std::to_string(found) +
                                             " layers with experts, which is what the model has, found " +
                                             (cpu_moe == kAllMixtures ? "all" : std::to_string(cpu_moe))};
  }
  if (cpu_moe != kAllMixtures) mixtures.resize(cpu_moe);
  return Result<std::vector<const op::MoeFfn*>>{std::move(mixtures)};
}

Result<std::unique_ptr<HostExperts>> HostExperts::create(const Program& program,
                                                         const std::vector<const op::MoeFfn*>& mixtures, int max_rows,
                                                         const LoadOptions& options) {
  std::unique_ptr<HostExperts> experts(new HostExperts());
  TRY_ASSIGN(experts->bank_, cpu::ExpertBank::create(program, mixtures, max_rows, options));
  size_t width = 0, n_used = 0;
  for (const op::MoeFfn* mixture : mixtures) {
    experts->shapes_.push_back({static_cast<int>(program.matrices[mixture->up].ne[0]), mixture->n_used});
    width = std::max<size_t>(width, experts->shapes_.back().width);
    n_used = std::max<size_t>(n_used, mixture->n_used);
  }
  const auto rows = static_cast<size_t>(max_rows);
  TRY_ASSIGN(experts->x_, PinnedBuffer<float>::create(rows * width));
  TRY_ASSIGN(experts->sums_, PinnedBuffer<float>::create(rows * width));
  TRY_ASSIGN(experts->weights_, PinnedBuffer<float>::create(rows * n_used));
  TRY_ASSIGN(experts->ids_, PinnedBuffer<int32_t>::create(rows * n_used));
  TRY_ASSIGN(experts->lane_, HostLane::create(max_rows, [made = experts.get()](int mixture, int n_rows) {
               made->compute(mixture, n_rows);
             }));
  return Result<std::unique_ptr<HostExperts>>{std::move(experts)};
}

HostExperts::HostExperts() = default;
HostExperts::~HostExperts() = default;

uint64_t HostExperts::weight_bytes() const { return bank_->weight_bytes(); }
Status HostExperts::failure() { return bank_->failure(); }
std::optional<ExpertTraffic> HostExperts::traffic() const { return bank_->traffic(); }

void HostExperts::compute(int mixture, int n_rows) {
  bank_->run(mixture, n_rows, x_.data(), ids_.data(), weights_.data(), sums_.data());
}

Status HostExperts::begin(const Stream& stream, const Rows& rows) {
  const Shape& shape = shapes_[rows.mixture];
  mixture_ = rows.mixture;
  return hand_over(stream, {.x = rows.x,
                            .norm = rows.norm,
                            .eps = rows.eps,
                            .ids = rows.ids,
                            .weights = rows.weights,
                            .weights_stride = rows.weights_stride,
                            .n_rows = rows.n_rows,
                            .width = shape.width,
                            .n_used = shape.n_used,
                            .host_x = x_.data(),
                            .host_ids = ids_.data(),
                            .host_weights = weights_.data(),
                            .bell = lane_->bell(rows.mixture, rows.n_rows)});
}

Status HostExperts::join(const Stream& stream, TakeBackArgs into) {
  lane_->join(stream);
  into.host_sums = sums_.data();
  into.bell = lane_->bell(mixture_, into.n_rows);
  return take_back(stream, into);
}

}  // namespace chimere::cuda
