#include "sim/network/finish_queue.h"

#include <algorithm>

#include "base/random.h"

namespace orrery::network {

void FinishQueue::Set(std::int32_t item, Time time) {
  if (Index(item) >= nodes_.size()) nodes_.resize(Index(item) + 1);
  if (nodes_[Index(item)].bucket != kNone) {
    if (buckets_[Index(nodes_[Index(item)].bucket)].time == time) return;
    Unlink(item);
  }
  if (time == kNever) return;
  const std::int32_t b = BucketOf(time);
  Bucket& bucket = buckets_[Index(b)];
  nodes_[Index(item)] = {b, kNone, bucket.last};
  (bucket.last == kNone ? bucket.first : nodes_[Index(bucket.last)].next) = item;
  bucket.last = item;
  ++linked_;
}

void FinishQueue::Unlink(std::int32_t item) {
  Node& node = nodes_[Index(item)];
  Bucket& bucket = buckets_[Index(node.bucket)];
  (node.previous == kNone ? bucket.first : nodes_[Index(node.previous)].next) = node.next;
  (node.next == kNone ? bucket.last : nodes_[Index(node.next)].previous) = node.previous;
  node.bucket = kNone;
  --linked_;
}

std::int32_t FinishQueue::BucketOf(Time time) {
  std::int32_t& recent = recent_[Mix(static_cast<std::uint64_t>(time.count())) % recent_.size()];
  if (recent != kNone && buckets_[Index(recent)].time == time) return recent;
  if (heap_.size() > 2 * linked_ + 64) DropEmpty();
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::int32_t>(buckets_.size()));
    buckets_.emplace_back();
  }
  recent = unused_.back();
  unused_.pop_back();
  buckets_[Index(recent)].time = time;
  heap_.push_back({time, recent});
  std::push_heap(heap_.begin(), heap_.end(), IsLater);
  return recent;
}

void FinishQueue::Recycle(std::int32_t bucket) {
  buckets_[Index(bucket)] = Bucket();
  unused_.push_back(bucket);
}

void FinishQueue::DropEmpty() {
  std::erase_if(heap_, [this](const Entry& entry) {
    if (buckets_[Index(entry.bucket)].first != kNone) return false;
    Recycle(entry.bucket);
    return true;
  });
  std::make_heap(heap_.begin(), heap_.end(), IsLater);
}

Time FinishQueue::First() {
  while (!heap_.empty() && buckets_[Index(heap_.front().bucket)].first == kNone) {
    Recycle(heap_.front().bucket);
    std::pop_heap(heap_.begin(), heap_.end(), IsLater);
    heap_.pop_back();
  }
  return heap_.empty() ? kNever : heap_.front().time;
}

void FinishQueue::TakeFirst(std::vector<std::int32_t>& items) {
  if (First() == kNever) return;
  for (std::int32_t item = buckets_[Index(heap_.front().bucket)].first; item != kNone;
       item = nodes_[Index(item)].next) {
    nodes_[Index(item)].bucket = kNone;
    items.push_back(item);
    --linked_;
  }
  Recycle(heap_.front().bucket);
  std::pop_heap(heap_.begin(), heap_.end(), IsLater);
  heap_.pop_back();
}

}  // namespace orrery::network
