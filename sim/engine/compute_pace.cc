#include "sim/engine/compute_pace.h"

#include <algorithm>

#include "base/check.h"

namespace orrery::engine {

ComputePace::ComputePace(const Program& program) : program_(program) { rates_.fill(kWholeRate); }

void ComputePace::Count(std::int32_t load, std::int32_t change) {
  const auto known =
      std::find_if(counts_.begin(), counts_.end(), [&](const auto& entry) { return entry.first == load; });
  if (known == counts_.end()) {
    ORRERY_CHECK(change > 0);
    counts_.emplace_back(load, change);
    return;
  }
  known->second += change;
  if (known->second == 0) counts_.erase(known);
}

void ComputePace::SetRates() {
  is_slowed_ = false;
  for (std::size_t kind = 0; kind < rates_.size(); ++kind) {
    std::int64_t at_least = 0;
    Int128 taken = 0;
    for (const auto& [load, times] : counts_) {
      const Load& counted = program_.loads[static_cast<std::size_t>(load)];
      at_least = std::max(at_least, counted.at_least[kind]);
      taken += Int128{counted.takes[kind]} * times;
    }
    const Int128 rate = Int128{kWholeRate} - at_least - taken;
    rates_[kind] = rate < kLeastRate ? kLeastRate : static_cast<std::int64_t>(rate);
    is_slowed_ |= rates_[kind] != kWholeRate;
  }
}

ComputePace::Place ComputePace::Entered(std::int32_t segment, Time since) const {
  if (segment == count_) return {segment, since, 0};
  const Segment& entered = segments_[segment];
  return {segment, std::max(since, host_start_ + entered.issue), Int128{entered.duration.count()} * kWholeRate};
}

Time ComputePace::EndOf(const Place& place) const { return place.at + TimeOfWork(place.left, RateOf(place.segment)); }

// Goes on to `until`; calls `ended(Time)` for every segment that has ended by then.
template <typename Ended>
void ComputePace::Walk(Place& place, Time until, Ended&& ended) const {
  while (place.segment < count_ && (place.at < until || (place.at == until && place.left == 0))) {
    const Time end = EndOf(place);
    if (end > until) {
      place.left -= Int128{RateOf(place.segment)} * (until - place.at).count();
      place.at = until;
      return;
    }
    ended(end);
    place = Entered(place.segment + 1, end);
  }
}

void ComputePace::Begin(const Op& op, Time host_start, Time now) {
  op_ = &op;
  segments_ = program_.segments.data() + op.first_segment;
  kinds_ = program_.segment_kinds.empty() ? nullptr : program_.segment_kinds.data() + op.first_segment;
  count_ = op.num_segments;
  host_start_ = host_start;
  place_ = Entered(0, now);
  was_slowed_ = is_slowed_;
  ends_.clear();
}

void ComputePace::Settle(Time now) {
  if (is_running()) Walk(place_, now, [&](Time end) { ends_.push_back(end); });
  settled_ = now;
  SetRates();
  was_slowed_ |= is_slowed_;
  kind_ = place_.segment < count_ && place_.at <= now ? KindOf(place_.segment) : std::uint8_t{0};
}

std::span<const Time> ComputePace::Finish() {
  Walk(place_, kNever, [&](Time end) { ends_.push_back(end); });
  op_ = nullptr;
  count_ = 0;
  place_ = {};
  return was_slowed_ ? std::span<const Time>(ends_) : std::span<const Time>();
}

Time ComputePace::End() const {
  Place place = place_;
  Walk(place, kNever, [](Time) {});
  return place.at;
}

// What is not issued yet counts as kind 0; what takes no time does not count.
Time ComputePace::KindChange() const {
  Time since = settled_;
  for (Place place = place_; place.segment < count_;) {
    if (place.at > since && kind_ != 0) return since;
    if (place.left > 0 && KindOf(place.segment) != kind_) return place.at;
    since = EndOf(place);
    place = Entered(place.segment + 1, since);
  }
  return kNever;
}

void ComputePace::AddTo(StateHash& hash) const {
  std::uint64_t counts = 0;  // of a set
  for (const auto& [load, times] : counts_) {
    StateHash count{Time()};
    count.Add(load);
    count.Add(times);
    counts += count.value();
  }
  hash.Add(counts);
  hash.Add(count_);
  if (!is_running()) return;
  hash.AddInstant(host_start_);
  hash.Add(place_.segment);
  hash.AddInstant(place_.at);
  hash.Add(place_.left);
  hash.AddInstant(settled_);
  hash.Add(std::int32_t{was_slowed_});
  for (const Time end : ends_) hash.AddInstant(end);
}

}  // namespace orrery::engine
