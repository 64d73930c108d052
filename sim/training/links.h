// Which pipeline ranks exchange messages, and over which channels of their programs.
#ifndef ORRERY_SIM_TRAINING_LINKS_H_
#define ORRERY_SIM_TRAINING_LINKS_H_

#include <compare>
#include <cstdint>
#include <vector>

#include "schedules/lowering.h"

namespace orrery::training {

// One end of the messages between two pipeline ranks in one direction of the model (activations go forward, gradients
// backward).
struct Channel {
  std::int32_t peer = 0;  // pipeline rank
  bool forward = true;
  bool is_send = true;

  friend auto operator<=>(const Channel&, const Channel&) = default;
};

// Where the two ends of a message are.
struct MessageEnds {
  std::int32_t send_channel = 0;
  std::int32_t receive_channel = 0;
  // Number of the message on its link, from 0, in the order in which its sender produces them.
  std::int32_t sequence = 0;
};

struct Links {
  // By pipeline rank, sorted: index = channel of its program.
  std::vector<std::vector<Channel>> channels;
  // By message of the lowering.
  std::vector<MessageEnds> ends;

  // `channel` must exist on the rank.
  std::int32_t IndexOf(std::int32_t pipeline_rank, const Channel& channel) const;
};

Links LinksOf(const schedules::Lowering& lowering);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_LINKS_H_
