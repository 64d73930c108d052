// Dispatch or combine of a mixture of experts over tokens per rank, by one transport.
#ifndef ORRERY_REPORTS_EXPERT_REPORT_H_
#define ORRERY_REPORTS_EXPERT_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/expert_exchange.h"

namespace orrery::reports {

struct ExpertSweep {
  struct Row {
    std::int64_t tokens = 0;  // of one rank
    double bytes = 0;         // of them, one copy each
    collectives::ExpertTime time;
  };
  std::string collective;
  std::string cluster;
  std::string transport;
  std::string data_type;
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;
  collectives::ExpertExchange exchange = {};  // but for the tokens
  bool one_copy_per_rank = true;              // else one for each expert
  std::vector<std::string> assumptions = {};
  std::vector<Row> rows = {};
};

std::string ExpertText(const ExpertSweep& sweep);
std::string ExpertJson(const ExpertSweep& sweep);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_EXPERT_REPORT_H_
