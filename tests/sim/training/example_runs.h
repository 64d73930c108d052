// Runs for tests above the loader: the shipped examples, and small ones on the shipped presets.
#ifndef ORRERY_TESTS_SIM_TRAINING_EXAMPLE_RUNS_H_
#define ORRERY_TESTS_SIM_TRAINING_EXAMPLE_RUNS_H_

#include <string>
#include <vector>

#include "proto/loader.h"
#include "sim/training/simulate.h"

namespace orrery::training::testing {

spec::LoadOptions ShippedSpecs(std::vector<std::string> overrides = {});

// Stems of specs/runs/*.txtpb, in order.
std::vector<std::string> ExampleNames();

// All of these throw std::runtime_error with the status's message where something fails, which fails the test.
v1::Run Example(const std::string& name, std::vector<std::string> overrides = {});
v1::Run FromText(const std::string& text, std::vector<std::string> overrides = {});
// GPT 1.7B (24 layers, 24 heads) on eight-GPU A100 nodes: tp 2, pp 4, dp 4, eight micro-batches of one sequence, no
// jitter, software level of 2022 (batched messages, exposed data-parallel communication).
v1::Run SmallRun(std::vector<std::string> overrides = {});
Result Simulated(const v1::Run& run, const SimulateOptions& options = {});

}  // namespace orrery::training::testing

#endif  // ORRERY_TESTS_SIM_TRAINING_EXAMPLE_RUNS_H_
