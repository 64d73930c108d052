#include <algorithm>

#include "workloads/ends.h"
#include "workloads/layer.h"
#include "workloads/transformer.h"

namespace orrery::workloads {
namespace {

// Operators of one layer and of both ends stay below this.
constexpr std::size_t kMostOperators = 96;

// A pass over one layer, and the layers [first, end) that run it.
struct Group {
  std::vector<Operator> layer;
  std::int64_t first = 0;
  std::int64_t end = 0;
};

Group ForwardGroup(const Shape& shape, std::int64_t first, std::int64_t end) {
  Group group{{}, first, end};
  if (first >= end) return group;
  group.layer.reserve(kMostOperators);
  Recorder recorder(&group.layer);
  LayerForward(shape, ForwardRetention(shape), recorder);
  return group;
}

Group BackwardGroup(const Shape& shape, std::int64_t first, std::int64_t end) {
  Group group{{}, first, end};
  if (first >= end) return group;
  group.layer.reserve(kMostOperators);
  Recorder recorder(&group.layer);
  LayerBackward(shape, recorder);
  return group;
}

// Appends the group's layers in the order in which a pass meets them.
void Append(Group& group, bool reversed, std::vector<Operator>* operators) {
  for (std::int64_t i = group.first; i < group.end; ++i) {
    const auto index = static_cast<std::int32_t>(reversed ? group.end - 1 - (i - group.first) : i);
    for (Operator& op : group.layer) op.layer = index;
    operators->insert(operators->end(), group.layer.begin(), group.layer.end());
  }
}

std::size_t SizeOf(const Group& group) {
  return static_cast<std::size_t>(group.end - group.first) * group.layer.size();
}

}  // namespace

ChunkWork BuildChunk(const v1::Run& run, const ChunkShape& chunk) {
  const Shape shape = MakeShape(run);
  // Under full recomputation of some layers, the first ones keep their input only, the others everything.
  std::int64_t first_kept = chunk.layers;
  Shape kept = shape;
  if (shape.recompute == v1::FULL && shape.recompute_layers >= 0) {
    kept.recompute = v1::NONE;
    first_kept = std::min(chunk.layers, shape.recompute_layers);
  }
  ChunkWork work;
  Group first = ForwardGroup(shape, 0, first_kept);
  Group rest = ForwardGroup(kept, first_kept, chunk.layers);
  work.forward.reserve(SizeOf(first) + SizeOf(rest) + kMostOperators);
  Recorder forward(&work.forward);
  if (chunk.embedding) EmbeddingForward(shape, forward);
  Append(first, /*reversed=*/false, &work.forward);
  Append(rest, /*reversed=*/false, &work.forward);
  if (chunk.head) HeadForward(shape, forward);

  first = BackwardGroup(shape, 0, first_kept);
  rest = BackwardGroup(kept, first_kept, chunk.layers);
  work.backward.reserve(SizeOf(first) + SizeOf(rest) + kMostOperators);
  Recorder backward(&work.backward);
  if (chunk.head) HeadBackward(shape, backward);
  Append(rest, /*reversed=*/true, &work.backward);
  Append(first, /*reversed=*/true, &work.backward);
  if (chunk.embedding) EmbeddingBackward(shape, backward);
  return work;
}

}  // namespace orrery::workloads
