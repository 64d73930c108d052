// What a family makes of parameters, as text that a test can spell out.
#ifndef ORRERY_TESTS_SCHEDULES_ORDERS_H_
#define ORRERY_TESTS_SCHEDULES_ORDERS_H_

#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "schedules/family.h"

namespace orrery::schedules {

// "F0.2 B1.3": kind, chunk, micro-batch; "&" fuses an action with the next, "+" joins it to the next.
inline std::string Text(const std::vector<Action>& order) {
  std::string text;
  for (const Action& action : order) {
    if (!text.empty() && text.back() != '&') text += ' ';
    text += Letter(action.kind);
    text += std::to_string(action.chunk) + "." + std::to_string(action.micro_batch);
    if (action.joined) text += '+';
    if (action.fused) text += '&';
  }
  return text;
}

// By rank.
inline std::vector<std::string> Orders(std::string_view family, const Parameters& parameters) {
  const auto schedule = Generate(family, parameters);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  std::vector<std::string> texts;
  if (!schedule.ok()) return texts;
  for (const auto& order : schedule->order) texts.push_back(Text(order));
  return texts;
}

inline std::string Refusal(std::string_view family, const Parameters& parameters) {
  return std::string(Generate(family, parameters).status().message());
}

}  // namespace orrery::schedules

#endif  // ORRERY_TESTS_SCHEDULES_ORDERS_H_
