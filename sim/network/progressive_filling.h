// Weighted max-min rates of coupled variables on links, in integers.
//
// Variable i (rate r_i, weight w_i, cap c_i) puts a_il r_i on link l, whose capacity is C_l. Wanted: sum_i a_il r_i <=
// C_l and r_i <= c_i, with the vector of the levels r_i / w_i lexicographically as large as it can be from its smallest
// entry up. Every variable then has a bottleneck: its own cap, or a full link on which no variable has a higher level.
//
// Progressive filling finds it. All levels rise together from 0. What a link could give, were all its unfrozen
// variables to rise until it is full, is its fair share
//
//   s_l = floor((C_l - sum over frozen i of a_il r_i) / (sum over others of a_il w_i)).
//
// Of all links' shares and all variables' own levels ceil(c_i / w_i) the smallest is the next level s: the variables of
// *every* link with s_l = s and every variable whose own level is s are frozen together, at min(c_i, w_i s). Freezing
// at the smallest level never lowers another share, so that levels only rise and no link ever carries more than its
// capacity; what the floor leaves of a full link is less than its sum of a_il w_i. Each level is a function of the set
// of variables and links alone, so neither the order in which they were added nor a variable with count k in the place
// of k equal ones can show, and sets that share no link can be solved apart.
//
// A variable that is frozen at its own level must be so before a link of its own closes at a higher one, but when
// before that is the same. So only links are kept in order, and what is on a link is looked at when its share is the
// smallest; what is on that link alone whenever it is below the share.
//
// Cost: O(loads + links log links), beside one division for each time that a link's share is looked at again, and one
// look at what is on a link for each time that own levels below its share are found there.
//
// Source: D. Bertsekas and R. Gallager, "Data Networks", 2nd edition, section 6.5.2 (max-min flow control).
#ifndef ORRERY_SIM_NETWORK_PROGRESSIVE_FILLING_H_
#define ORRERY_SIM_NETWORK_PROGRESSIVE_FILLING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace orrery::network {

// Fill it, Solve, read it, Clear it: memory is kept. The caller guarantees positive arguments and, for each link, that
// the sum of count x coefficient x weight of its variables is at most its capacity; no rate is then 0 and nothing
// overflows.
class ProgressiveFilling {
 public:
  static constexpr std::int32_t kOwnCap = -1;

  void Clear();

  // Indices count from 0. `id` names the link in answers; ids are distinct.
  std::int32_t AddLink(std::int32_t id, std::int64_t capacity) {
    Link& link = links_.emplace_back();
    link.id = id;
    link.left = capacity;
    link.first_local = link.end_local = static_cast<std::int32_t>(locals_.size());
    return static_cast<std::int32_t>(links_.size()) - 1;
  }
  // A variable, or several, on the link added last and on no other, of this level of their own: in all, load x rate and
  // load x weight. It has no index and no answer: its level is the lesser of its own and ClosedAt.
  void AddLocal(std::int64_t level, std::int64_t rate, std::int64_t weight) {
    Link& link = links_.back();
    locals_.push_back({level, rate, weight});
    link.unfrozen += weight;
    ++link.end_local;
  }
  // `count` equal variables; `cap` is that of one of them.
  std::int32_t AddVariable(std::int64_t cap, std::int64_t weight, std::int64_t count) {
    Variable& variable = variables_.emplace_back();
    variable.cap = variable.rate = cap;
    variable.weight = weight;
    variable.count = count;
    variable.level = LevelOf(cap, weight);
    variable.first_load = variable.end_load = static_cast<std::int32_t>(loads_.size());
    return static_cast<std::int32_t>(variables_.size()) - 1;
  }
  // The variable added last puts `coefficient` on a link per unit of rate; each pair at most once.
  void AddLoad(std::int32_t l, std::int64_t coefficient) {
    Variable& variable = variables_.back();
    Link& link = links_[Index(l)];
    const std::int64_t of_all = coefficient * variable.count;
    loads_.push_back({l, static_cast<std::int32_t>(variables_.size()) - 1, link.last_load, of_all});
    link.last_load = variable.end_load++;
    link.least_level = std::min(link.least_level, variable.level);
    link.unfrozen += of_all * variable.weight;
    ++link.open;
  }

  void Solve();

  static std::int64_t LevelOf(std::int64_t rate, std::int64_t weight) { return (rate - 1) / weight + 1; }
  // Of one of the `count`.
  std::int64_t Rate(std::int32_t variable) const { return variables_[Index(variable)].rate; }
  // The level at which the link became full and froze all that was left on it; 0 where it never did.
  std::int64_t ClosedAt(std::int32_t link) const { return links_[Index(link)].closed_at; }
  // The id of the link that froze the variable, the smallest where several did; kOwnCap where its cap did.
  std::int32_t Bottleneck(std::int32_t variable) const { return variables_[Index(variable)].bottleneck; }

 private:
  static constexpr std::int32_t kNone = -1;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  struct Link {
    std::int32_t id = 0;
    std::int32_t first_local = 0;  // in locals_: those not frozen
    std::int32_t end_local = 0;
    std::int32_t last_load = kNone;     // in loads_
    std::int32_t open = 0;              // variables that are not frozen, without locals
    std::int64_t left = 0;              // capacity that frozen variables leave
    std::int64_t unfrozen = 0;          // sum of coefficient x weight x count of those not frozen
    std::int64_t least_level = kNever;  // no unfrozen variable but locals has a lower one of its own
    std::int64_t closed_at = 0;
  };
  struct Local {
    std::int64_t level = 0;
    std::int64_t rate = 0;    // x load
    std::int64_t weight = 0;  // x load
  };
  struct Variable {
    std::int64_t cap = 0;
    std::int64_t weight = 0;
    std::int64_t count = 0;
    std::int64_t level = 0;  // its own
    std::int64_t rate = 0;
    std::int32_t first_load = 0;  // in loads_
    std::int32_t end_load = 0;
    std::int32_t bottleneck = kOwnCap;
    bool is_frozen = false;
  };
  struct Load {
    std::int32_t link = 0;
    std::int32_t variable = 0;
    std::int32_t previous = kNone;  // of the link
    std::int64_t of_all = 0;        // coefficient x count
  };
  // A share that may be out of date; it is then too low.
  struct Entry {
    std::int64_t level = 0;
    std::int32_t link = 0;
  };
  static std::size_t Index(std::int32_t i) { return static_cast<std::size_t>(i); }
  static bool IsLater(const Entry& a, const Entry& b) { return a.level > b.level; }

  std::int64_t ShareOf(Link& link);
  bool TakeNextLevel();
  void FreezeBelow(Link& link, std::int64_t level);
  void Close(Link& link);
  void Freeze(std::int32_t variable, std::int64_t rate, std::int32_t bottleneck);

  std::vector<Link> links_;
  std::vector<Local> locals_;  // by link
  std::vector<Variable> variables_;
  std::vector<Load> loads_;  // by variable
  std::vector<Entry> heap_;
  std::int64_t level_ = 0;
  std::vector<std::int32_t> tied_;  // links that close at it
};

}  // namespace orrery::network

#endif  // ORRERY_SIM_NETWORK_PROGRESSIVE_FILLING_H_
