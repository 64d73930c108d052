#include "sim/network/progressive_filling.h"

#include <algorithm>

namespace orrery::network {

void ProgressiveFilling::Clear() {
  links_.clear();
  variables_.clear();
  loads_.clear();
}

std::int32_t ProgressiveFilling::AddLink(std::int32_t id, std::int64_t capacity) {
  links_.push_back({id, capacity, 0, 0, 0});
  return static_cast<std::int32_t>(links_.size()) - 1;
}

std::int32_t ProgressiveFilling::AddVariable(std::int64_t cap, std::int64_t weight, std::int64_t count) {
  variables_.push_back({cap, weight, count, kNotFrozen, kOwnCap, static_cast<std::int64_t>(loads_.size())});
  return static_cast<std::int32_t>(variables_.size()) - 1;
}

void ProgressiveFilling::AddLoad(std::int32_t link, std::int64_t coefficient) {
  loads_.push_back({link, coefficient * variables_.back().count});
  links_[Index(link)].unfrozen += loads_.back().of_all * variables_.back().weight;
  ++links_[Index(link)].first_user;  // a count, until ListUsers
}

// A counting sort of the loads by link.
void ProgressiveFilling::ListUsers() {
  users_.resize(loads_.size());
  std::int64_t end = 0;
  for (Link& link : links_) link.first_user = end += link.first_user;
  auto load_end = static_cast<std::int64_t>(loads_.size());
  for (auto v = static_cast<std::int32_t>(variables_.size()) - 1; v >= 0; --v) {
    for (auto i = variables_[Index(v)].first_load; i < load_end; ++i) {
      const auto slot = --links_[Index(loads_[static_cast<std::size_t>(i)].link)].first_user;
      users_[static_cast<std::size_t>(slot)] = v;
    }
    load_end = variables_[Index(v)].first_load;
  }
}

void ProgressiveFilling::Solve() {
  ListUsers();
  heap_.clear();
  for (std::size_t l = 0; l < links_.size(); ++l) {
    const Link& link = links_[l];
    if (link.unfrozen > 0) heap_.push_back({link.left / link.unfrozen, static_cast<std::int32_t>(l)});
  }
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    const Variable& variable = variables_[v];
    heap_.push_back({(variable.cap - 1) / variable.weight + 1, ~static_cast<std::int32_t>(v)});
  }
  std::make_heap(heap_.begin(), heap_.end(), IsLater);
  num_unfrozen_ = static_cast<std::int64_t>(variables_.size());
  while (num_unfrozen_ > 0) {
    const std::int64_t level = TakeNextLevel();
    // Own caps first; they are the negative items. Then links by id, so that the bottleneck is the smallest id.
    std::sort(tied_.begin(), tied_.end(), [this](std::int32_t a, std::int32_t b) {
      if (a < 0 || b < 0) return a < b;
      return links_[Index(a)].id < links_[Index(b)].id;
    });
    for (const std::int32_t item : tied_) {
      if (item < 0) {
        Freeze(~item, variables_[Index(~item)].cap, kOwnCap);
        continue;
      }
      links_[Index(item)].closed_at = level;
      const auto next = Index(item) + 1;
      const auto end = next < links_.size() ? links_[next].first_user : static_cast<std::int64_t>(users_.size());
      FreezeUsers(links_[Index(item)], end, level);
    }
  }
}

void ProgressiveFilling::Push(Entry entry) {
  heap_.push_back(entry);
  std::push_heap(heap_.begin(), heap_.end(), IsLater);
}

// The next level; all that is at it goes from the heap into tied_. An unfrozen variable always has an entry.
std::int64_t ProgressiveFilling::TakeNextLevel() {
  tied_.clear();
  std::int64_t level = 0;
  while (!heap_.empty() && (tied_.empty() || heap_.front().level == level)) {
    const Entry entry = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), IsLater);
    heap_.pop_back();
    if (entry.item >= 0) {
      const Link& link = links_[Index(entry.item)];
      if (link.unfrozen == 0) continue;
      const std::int64_t share = link.left / link.unfrozen;
      if (share > entry.level) {
        Push({share, entry.item});
        continue;
      }
    } else if (variables_[Index(~entry.item)].rate != kNotFrozen) {
      continue;
    }
    level = entry.level;
    tied_.push_back(entry.item);
  }
  return level;
}

void ProgressiveFilling::FreezeUsers(const Link& link, std::int64_t users_end, std::int64_t level) {
  for (auto i = link.first_user; i < users_end; ++i) {
    const std::int32_t v = users_[static_cast<std::size_t>(i)];
    // Below its cap: its own level is above this one.
    if (variables_[Index(v)].rate == kNotFrozen) Freeze(v, variables_[Index(v)].weight * level, link.id);
  }
}

void ProgressiveFilling::Freeze(std::int32_t v, std::int64_t rate, std::int32_t bottleneck) {
  Variable& variable = variables_[Index(v)];
  variable.rate = rate;
  variable.bottleneck = bottleneck;
  --num_unfrozen_;
  const auto next = Index(v) + 1;
  const auto end = next < variables_.size() ? variables_[next].first_load : static_cast<std::int64_t>(loads_.size());
  for (auto i = variable.first_load; i < end; ++i) {
    const Load& load = loads_[static_cast<std::size_t>(i)];
    links_[Index(load.link)].left -= load.of_all * rate;
    links_[Index(load.link)].unfrozen -= load.of_all * variable.weight;
  }
}

}  // namespace orrery::network
