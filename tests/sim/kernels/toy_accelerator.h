// An accelerator with round numbers, and the A100 and H100 of specs/.
#ifndef ORRERY_TESTS_SIM_KERNELS_TOY_ACCELERATOR_H_
#define ORRERY_TESTS_SIM_KERNELS_TOY_ACCELERATOR_H_

#include <fstream>
#include <sstream>
#include <string>

#include "base/check.h"
#include "google/protobuf/text_format.h"
#include "orrery/v1/cluster.pb.h"

namespace orrery::kernels {

// Four multiprocessors of 1e9 FLOP/s; one tile of 10 x 10 at half of the peak; 1e12 bytes/s, of which GEMMs reach half;
// no overheads.
inline v1::Accelerator ToyAccelerator() {
  v1::Accelerator accelerator;
  const bool parsed = google::protobuf::TextFormat::ParseFromString(
      R"pb(
        sms: 4
        memory_bandwidth: 1e12
        peak { data_type: FP16 flops_per_second: 4e9 }
        profile {
          gemm {
            data_types: [ FP16, BF16 ]
            tile { m: 10 n: 10 }
            efficiency { value: 0.5 }
            operand_reload { value: 0 }
            first_wave_gain { value: 0 }
            peak_efficiency { value: 1 }
            exposed_share { value: 0 }
            wave_overhead { value: 0 }
            max_split_k { value: 1 }
            k_step { value: 1 }
            memory_efficiency { value: 0.5 }
            alignment { value: 1 }
            misaligned_factor { value: 0.25 }
            overhead { value: 0 }
            sustained { value: 1 }
            misaligned_batch_factor { value: 0.125 }
          }
          attention {
            kernel: FLASH_ATTENTION_2
            data_types: [ FP16, BF16 ]
            forward_efficiency { value: 0.5 }
            backward_efficiency { value: 0.25 }
            half_length { value: 0 }
            backward_half_length { value: 0 }
            softmax_width { value: 0 }
            wide_factor { value: 0.5 }
            causal_efficiency { value: 1 }
            block { value: 8 }
            head_dims: [ 4, 16, 32, 512 ]
          }
          memory_bound {
            elementwise { value: 0.5 }
            activation { value: 0.4 }
            norm { value: 0.25 }
            softmax { value: 0.2 }
            optimizer { value: 0.8 }
            strided { value: 0.1 }
            cache_bytes { value: 0 }
            cache_bandwidth { value: 4e12 }
          }
          kernel_floor { value: 1e-6 }
        }
      )pb",
      &accelerator);
  ORRERY_CHECK(parsed);
  return accelerator;
}

inline v1::Accelerator WithProfile(std::int64_t sms, double bandwidth, double peak_16_bit, const std::string& name) {
  v1::Accelerator accelerator;
  accelerator.set_sms(sms);
  accelerator.set_memory_bandwidth(bandwidth);
  for (const v1::DataType type : {v1::FP16, v1::BF16}) {
    v1::PeakRate& peak = *accelerator.add_peak();
    peak.set_data_type(type);
    peak.set_flops_per_second(peak_16_bit);
  }
  std::ifstream file(ORRERY_SOURCE_DIR "/specs/profiles/" + name + ".txtpb");
  std::stringstream text;
  text << file.rdbuf();
  const bool parsed = google::protobuf::TextFormat::ParseFromString(text.str(), accelerator.mutable_profile());
  ORRERY_CHECK(parsed);
  return accelerator;
}

// 108 multiprocessors, 312 TFLOP/s, 2,039 GB/s: NVIDIA's data sheet of the 80 GB SXM4 part.
inline v1::Accelerator A100() { return WithProfile(108, 2.039e12, 312e12, "a100"); }

// 132 multiprocessors, 989.4 TFLOP/s, 3,350 GB/s: NVIDIA's data sheet of the 80 GB SXM5 part.
inline v1::Accelerator H100() { return WithProfile(132, 3.35e12, 989.4e12, "h100"); }

}  // namespace orrery::kernels

#endif  // ORRERY_TESTS_SIM_KERNELS_TOY_ACCELERATOR_H_
