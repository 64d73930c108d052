// Which GPUs an operation sends how much between: what it puts on the links of a graph.
//
// S bytes, n ranks on N nodes, g of them per node. A flow from GPU to GPU carries a share of what is `moved`.
//
//   Ring      moved = RingShare S. Of the g ranks on a node every one sends on to the next one there but for the last;
//             channels begin at different ranks, so that (g - 1) / g of it goes through each rank's NVLink and 1 / g
//             through its NIC, to the rank of the same place in the next node. Inside one node the ring closes.
//   NVLS      moved = (1 + 1 / g) S for all-reduce, S else: what each port takes in and gives out
//   Tree      moved = S: along the chain of a node's ranks up and down; between nodes over two binary trees with half
//   of
//             it each, up and down, spread over the ranks of the node
//   NVLSTree  inside the node as NVLS, between nodes as Tree
//   PAT       one rank per node, moved = (n - 1) / n S: to the ranks 1, 2, 4 ... further, min(2^k, n - 2^k) / (n - 1)
//   of it
//   messages  moved = S, as message_flows.h says
//
// Where nodes hold different numbers of ranks, what goes between nodes goes over as many ranks of each as the emptiest
// has, its first ones, and each node's own g counts inside of it.
//
// LL doubles what is moved, LL128 adds a fifteenth (their flags).
#ifndef ORRERY_SIM_COLLECTIVES_FOOTPRINT_H_
#define ORRERY_SIM_COLLECTIVES_FOOTPRINT_H_

#include <cstdint>
#include <vector>

#include "sim/collectives/nccl/tuner.h"

namespace orrery::collectives {

struct Footprint {
  nccl::Operation operation = nccl::Operation::kAllReduce;
  nccl::Variant variant;
  std::int64_t bytes = 0;  // as nccl::Model::PriceOf counts them

  friend bool operator==(const Footprint&, const Footprint&) = default;
};

// `numerator / denominator` of what is moved goes from a GPU to another.
struct Flow {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t rail = 0;  // tells flows between the same nodes apart
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
};

// `nodes`: the ranks of every node, in order; at least two ranks.
std::vector<Flow> FlowsOf(const Footprint& footprint, const std::vector<std::vector<std::int64_t>>& nodes);

// Bytes.
double MovedBy(const Footprint& footprint, const std::vector<std::vector<std::int64_t>>& nodes);

}  // namespace orrery::collectives

#endif  // ORRERY_SIM_COLLECTIVES_FOOTPRINT_H_
