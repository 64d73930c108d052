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
// Cost: O(loads + links log links) beside one division for each time that a link's share is looked at again.
//
// Source: D. Bertsekas and R. Gallager, "Data Networks", 2nd edition, section 6.5.2 (max-min flow control).
#ifndef ORRERY_SIM_NETWORK_PROGRESSIVE_FILLING_H_
#define ORRERY_SIM_NETWORK_PROGRESSIVE_FILLING_H_

#include <cstdint>
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
  std::int32_t AddLink(std::int32_t id, std::int64_t capacity);
  // `count` equal variables; `cap` is that of one of them.
  std::int32_t AddVariable(std::int64_t cap, std::int64_t weight, std::int64_t count);
  // The variable added last puts `coefficient` on a link per unit of rate; each pair at most once.
  void AddLoad(std::int32_t link, std::int64_t coefficient);

  void Solve();

  // Of one of the `count`.
  std::int64_t Rate(std::int32_t variable) const { return variables_[Index(variable)].rate; }
  // The level at which the link became full and froze all that was left on it; 0 where it never did.
  std::int64_t ClosedAt(std::int32_t link) const { return links_[Index(link)].closed_at; }
  // The id of the link that froze the variable, the smallest where several did; kOwnCap where its cap did.
  std::int32_t Bottleneck(std::int32_t variable) const { return variables_[Index(variable)].bottleneck; }

 private:
  struct Link {
    std::int32_t id = 0;
    std::int64_t left = 0;        // capacity that frozen variables leave
    std::int64_t unfrozen = 0;    // sum of coefficient x weight x count of those not frozen
    std::int64_t first_user = 0;  // in users_
    std::int64_t closed_at = 0;
  };
  struct Variable {
    std::int64_t cap = 0;
    std::int64_t weight = 0;
    std::int64_t count = 0;
    std::int64_t rate = kNotFrozen;
    std::int32_t bottleneck = kOwnCap;
    std::int64_t first_load = 0;  // in loads_
  };
  struct Load {
    std::int32_t link = 0;
    std::int64_t of_all = 0;  // coefficient x count
  };
  // A link, or a variable's own level: ~index. A link's level may be out of date; it is then too low.
  struct Entry {
    std::int64_t level = 0;
    std::int32_t item = 0;
  };
  static constexpr std::int64_t kNotFrozen = -1;
  static std::size_t Index(std::int32_t i) { return static_cast<std::size_t>(i); }
  static bool IsLater(const Entry& a, const Entry& b) { return a.level > b.level; }

  void ListUsers();
  void Push(Entry entry);
  std::int64_t TakeNextLevel();
  void FreezeUsers(const Link& link, std::int64_t users_end, std::int64_t level);
  void Freeze(std::int32_t variable, std::int64_t rate, std::int32_t bottleneck);

  std::vector<Link> links_;
  std::vector<Variable> variables_;
  std::vector<Load> loads_;
  std::vector<std::int32_t> users_;  // variables by link
  std::vector<Entry> heap_;
  std::vector<std::int32_t> tied_;  // items of the level being frozen
  std::int64_t num_unfrozen_ = 0;
};

}  // namespace orrery::network

#endif  // ORRERY_SIM_NETWORK_PROGRESSIVE_FILLING_H_
