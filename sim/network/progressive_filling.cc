#include "sim/network/progressive_filling.h"

#include <algorithm>

namespace orrery::network {

void ProgressiveFilling::Clear() {
  links_.clear();
  locals_.clear();
  variables_.clear();
  loads_.clear();
}

void ProgressiveFilling::Solve() {
  heap_.clear();
  for (std::size_t l = 0; l < links_.size(); ++l) heap_.push_back({ShareOf(links_[l]), static_cast<std::int32_t>(l)});
  std::make_heap(heap_.begin(), heap_.end(), IsLater);
  while (TakeNextLevel()) {
    for (const std::int32_t link : tied_) Close(links_[Index(link)]);
  }
}

// What each unfrozen variable on the link can have, without those on this link alone that need less; 0 if none is left.
std::int64_t ProgressiveFilling::ShareOf(Link& link) {
  while (link.unfrozen > 0) {
    const std::int64_t share = link.left / link.unfrozen;
    const std::int32_t end = link.end_local;
    for (std::int32_t i = link.first_local; i < link.end_local;) {
      Local& local = locals_[Index(i)];
      if (local.level >= share) {
        ++i;
        continue;
      }
      link.left -= local.rate;
      link.unfrozen -= local.weight;
      local = locals_[Index(--link.end_local)];
    }
    if (link.end_local == end) return share;
  }
  return 0;
}

// Takes the next level at which links close, and them, by id, from the heap. False: there is none.
bool ProgressiveFilling::TakeNextLevel() {
  tied_.clear();
  while (!heap_.empty() && (tied_.empty() || heap_.front().level == level_)) {
    const std::int32_t item = heap_.front().link;
    std::pop_heap(heap_.begin(), heap_.end(), IsLater);
    heap_.pop_back();
    Link& link = links_[Index(item)];
    const std::int64_t share = ShareOf(link);
    const bool is_next = tied_.empty() ? heap_.empty() || share <= heap_.front().level : share == level_;
    if (link.open == 0) {
      link.closed_at = share;
    } else if (is_next && share <= link.least_level) {
      level_ = share;
      tied_.push_back(item);
    } else {
      if (is_next) FreezeBelow(link, share);
      heap_.push_back({share, item});
      std::push_heap(heap_.begin(), heap_.end(), IsLater);
    }
  }
  std::sort(tied_.begin(), tied_.end(),
            [this](std::int32_t a, std::int32_t b) { return links_[Index(a)].id < links_[Index(b)].id; });
  return !tied_.empty();
}

// Freezes what on the link has an own level below this one.
void ProgressiveFilling::FreezeBelow(Link& link, std::int64_t level) {
  link.least_level = kNever;
  for (std::int32_t i = link.last_load; i != kNone; i = loads_[Index(i)].previous) {
    const Variable& variable = variables_[Index(loads_[Index(i)].variable)];
    if (variable.is_frozen) continue;
    if (variable.level < level)
      Freeze(loads_[Index(i)].variable, variable.cap, kOwnCap);
    else
      link.least_level = std::min(link.least_level, variable.level);
  }
}

void ProgressiveFilling::Close(Link& link) {
  link.closed_at = level_;
  for (std::int32_t i = link.last_load; i != kNone; i = loads_[Index(i)].previous) {
    const std::int32_t v = loads_[Index(i)].variable;
    const Variable& variable = variables_[Index(v)];
    if (variable.is_frozen) continue;
    if (variable.level == level_)
      Freeze(v, variable.cap, kOwnCap);
    else
      Freeze(v, variable.weight * level_, link.id);
  }
}

void ProgressiveFilling::Freeze(std::int32_t v, std::int64_t rate, std::int32_t bottleneck) {
  Variable& variable = variables_[Index(v)];
  variable.rate = rate;
  variable.bottleneck = bottleneck;
  variable.is_frozen = true;
  for (std::int32_t i = variable.first_load; i < variable.end_load; ++i) {
    const Load& load = loads_[Index(i)];
    Link& link = links_[Index(load.link)];
    link.left -= load.of_all * rate;
    link.unfrozen -= load.of_all * variable.weight;
    --link.open;
  }
}

}  // namespace orrery::network
