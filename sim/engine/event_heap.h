// The event queue's priority queue: a heap of 16-byte entries with four children each, half as deep as a binary one and
// with siblings on neighbouring cache lines.
//
// The order is total, (time, key), so that what comes out does not depend on how it got in; entries that are equal in
// both cannot be told apart.
#ifndef ORRERY_SIM_ENGINE_EVENT_HEAP_H_
#define ORRERY_SIM_ENGINE_EVENT_HEAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace orrery::engine {

struct Event {
  Time time;
  std::uint64_t key = 0;
};

class EventHeap {
 public:
  bool empty() const { return heap_.empty(); }
  // The first in order. Not of an empty heap, as Pop.
  const Event& top() const { return heap_.front(); }
  // In no order.
  std::span<const Event> all() const { return heap_; }

  // What is likely to follow the first soon: up to four, in no order; the second in order is among them.
  std::span<const Event> Soon() const {
    if (heap_.size() < 2) return {};
    return {heap_.data() + 1, std::min(kChildren, heap_.size() - 1)};
  }

  void Push(Event event) {
    std::size_t hole = heap_.size();
    heap_.push_back(event);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / kChildren;
      if (!ComesBefore(event, heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }

  void Pop() {
    const Event last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return;
    std::size_t hole = 0;
    for (std::size_t child = 1; child < heap_.size(); child = kChildren * hole + 1) {
      const std::size_t end = std::min(child + kChildren, heap_.size());
      std::size_t first = child;
      for (std::size_t other = child + 1; other < end; ++other) {
        if (ComesBefore(heap_[other], heap_[first])) first = other;
      }
      if (!ComesBefore(heap_[first], last)) break;
      heap_[hole] = heap_[first];
      hole = first;
    }
    heap_[hole] = last;
  }

 private:
  static constexpr std::size_t kChildren = 4;

  static bool ComesBefore(const Event& a, const Event& b) { return a.time != b.time ? a.time < b.time : a.key < b.key; }

  std::vector<Event> heap_;
};

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_EVENT_HEAP_H_
