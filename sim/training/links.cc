#include "sim/training/links.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"

namespace orrery::training {

std::int32_t Links::IndexOf(std::int32_t pipeline_rank, const Channel& channel) const {
  const std::vector<Channel>& known = channels[static_cast<std::size_t>(pipeline_rank)];
  const auto found = std::lower_bound(known.begin(), known.end(), channel);
  ORRERY_CHECK(found != known.end() && *found == channel);
  return static_cast<std::int32_t>(found - known.begin());
}

Links LinksOf(const schedules::Lowering& lowering) {
  Links links;
  links.channels.resize(lowering.boundaries.size());
  const auto add = [&](std::int32_t rank, const Channel& channel) {
    std::vector<Channel>& known = links.channels[static_cast<std::size_t>(rank)];
    const auto place = std::lower_bound(known.begin(), known.end(), channel);
    if (place == known.end() || *place != channel) known.insert(place, channel);
  };
  for (const schedules::Message& message : lowering.messages) {
    add(message.from_rank, {message.to_rank, message.forward, true});
    add(message.to_rank, {message.from_rank, message.forward, false});
  }
  std::vector<std::vector<std::int32_t>> sent(links.channels.size());
  for (std::size_t rank = 0; rank < sent.size(); ++rank) sent[rank].resize(links.channels[rank].size());
  links.ends.reserve(lowering.messages.size());
  // Messages are sorted by sender and producer.
  for (const schedules::Message& message : lowering.messages) {
    const std::int32_t send = links.IndexOf(message.from_rank, {message.to_rank, message.forward, true});
    const std::int32_t receive = links.IndexOf(message.to_rank, {message.from_rank, message.forward, false});
    links.ends.push_back(
        {send, receive, sent[static_cast<std::size_t>(message.from_rank)][static_cast<std::size_t>(send)]++});
  }
  return links;
}

}  // namespace orrery::training
