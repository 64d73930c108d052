// What a sweep comes to: how many points were legal, and the best of them.
#ifndef ORRERY_SWEEP_RANKING_H_
#define ORRERY_SWEEP_RANKING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sweep/table.h"

namespace orrery::sweep {

class Ranking {
 public:
  explicit Ranking(std::size_t top) : top_(top) {}

  // Rows in the order of their points.
  void Add(const Row& row);

  std::int64_t ok() const { return ok_; }
  std::int64_t rows() const { return ok_ + refused_ + unfitting_; }
  // The `top` rows that are ok with most tokens per second and GPU, the best first, equal ones in order of their
  // points; above them the counts, and where no row is ok the first reason.
  std::string Text(const std::vector<std::string>& fields) const;

 private:
  std::size_t top_;
  std::vector<Row> best_;  // in order, at most top_
  std::int64_t ok_ = 0;
  std::int64_t refused_ = 0;
  std::int64_t unfitting_ = 0;
  std::string first_reason_;
};

}  // namespace orrery::sweep

#endif  // ORRERY_SWEEP_RANKING_H_
