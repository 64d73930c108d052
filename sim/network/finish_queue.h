// When activities will end: a priority queue of times in which those of one time are one entry, because much that
// starts together ends together.
#ifndef ORRERY_SIM_NETWORK_FINISH_QUEUE_H_
#define ORRERY_SIM_NETWORK_FINISH_QUEUE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/network/work.h"

namespace orrery::network {

// Items are small numbers. Every item has one time at most; moving it is O(1) but for a time not seen lately, which
// costs O(log entries). Memory is kept; there are never more entries than twice the items, and a few.
class FinishQueue {
 public:
  FinishQueue() { recent_.fill(kNone); }

  // Gives the item this time instead of the one that it had; kNever: none.
  void Set(std::int32_t item, Time time);
  // kNever where no item has a time.
  Time First();
  // Appends the items of First() to `items` in the order in which they got it, and takes them out.
  void TakeFirst(std::vector<std::int32_t>& items);

 private:
  static constexpr std::int32_t kNone = -1;
  struct Node {
    std::int32_t bucket = kNone;
    std::int32_t next = kNone;
    std::int32_t previous = kNone;
  };
  struct Bucket {
    Time time = kNever;  // kNever: unused
    std::int32_t first = kNone;
    std::int32_t last = kNone;
  };
  struct Entry {
    Time time;
    std::int32_t bucket = kNone;
  };
  static std::size_t Index(std::int32_t i) { return static_cast<std::size_t>(i); }
  static bool IsLater(const Entry& a, const Entry& b) { return a.time > b.time; }

  void Unlink(std::int32_t item);
  std::int32_t BucketOf(Time time);
  void DropEmpty();
  void Recycle(std::int32_t bucket);

  std::vector<Node> nodes_;  // by item
  std::vector<Bucket> buckets_;
  std::vector<std::int32_t> unused_;
  std::vector<Entry> heap_;                // of buckets; also of those that have become empty
  std::array<std::int32_t, 64> recent_{};  // by hash of the time: a bucket that may have it
  std::size_t linked_ = 0;                 // items with a time
};

}  // namespace orrery::network

#endif  // ORRERY_SIM_NETWORK_FINISH_QUEUE_H_
