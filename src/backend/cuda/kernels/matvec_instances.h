// matvec_instances.h  The formats with kernels of their own, spread over files so that they compile in parallel.
#pragma once

#include "backend/cuda/kernels/matvec_staged.h"

namespace chimere::cuda {

using MatvecLaunch = Status (*)(const Stream&, MatvecPlan&);

Status matvec_q8_0(const Stream& stream, MatvecPlan& plan);
Status matvec_q4_0(const Stream& stream, MatvecPlan& plan);
Status matvec_q4_1(const Stream& stream, MatvecPlan& plan);
Status matvec_q5_0(const Stream& stream, MatvecPlan& plan);
Status matvec_q4_k(const Stream& stream, MatvecPlan& plan);
Status matvec_q5_k(const Stream& stream, MatvecPlan& plan);
Status matvec_q6_k(const Stream& stream, MatvecPlan& plan);
Status matvec_iq3_s(const Stream& stream, MatvecPlan& plan);
Status matvec_iq3_s_wide(const Stream& stream, MatvecPlan& plan);
Status matvec_iq4_nl(const Stream& stream, MatvecPlan& plan);
Status matvec_iq4_xs(const Stream& stream, MatvecPlan& plan);
Status matvec_mxfp4(const Stream& stream, MatvecPlan& plan);

// Null where any_dot has to serve.
inline MatvecLaunch matvec_instance(DType type) {
  if (!has_own_kernels(type)) return nullptr;
  if (type == kIq3Wide) return matvec_iq3_s_wide;
  switch (type) {
    case DType::Q8_0: return matvec_q8_0;
    case DType::Q4_0: return matvec_q4_0;
    case DType::Q4_1: return matvec_q4_1;
    case DType::Q5_0: return matvec_q5_0;
    case DType::Q4_K: return matvec_q4_k;
    case DType::Q5_K: return matvec_q5_k;
    case DType::Q6_K: return matvec_q6_k;
    case DType::IQ3_S: return matvec_iq3_s;
    case DType::IQ4_NL: return matvec_iq4_nl;
    case DType::IQ4_XS: return matvec_iq4_xs;
    case DType::MXFP4: return matvec_mxfp4;
    default: return nullptr;
  }
}

}  // namespace chimere::cuda
