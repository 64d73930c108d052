#include "sim/collectives/nccl/model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"

namespace orrery::collectives::nccl {
namespace {

// Major and minor number as one: 2021 for 2.21. Below 0: no version.
std::int64_t NumberOfOne(std::string_view text) {
  text = text.substr(0, text.find('+'));  // "2.21.5+cuda12.4"
  std::int64_t parts[4] = {};
  std::size_t count = 0;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    if (count == std::size(parts) || at == end || *at == '-') return -1;
    const auto [next, error] = std::from_chars(at, end, parts[count]);
    if (error != std::errc()) return -1;
    ++count;
    if (next == end) break;
    if (*next != '.') return -1;
    at = next + 1;
  }
  if (count < 2 || parts[0] < 1 || parts[0] > 1000 || parts[1] > 999) return -1;
  return 1000 * parts[0] + parts[1];
}

// The same of the last version of a range "2.20-2.21".
std::int64_t Number(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return NumberOfOne(text);
  return NumberOfOne(text.substr(0, dash)) < 0 ? -1 : NumberOfOne(text.substr(dash + 1));
}

template <typename Value>
struct Name {
  const char* name;
  Value value;
};
constexpr Name<Operation> kOperations[] = {
    {"all_reduce", Operation::kAllReduce}, {"reduce_scatter", Operation::kReduceScatter},
    {"all_gather", Operation::kAllGather}, {"broadcast", Operation::kBroadcast},
    {"reduce", Operation::kReduce},        {"alltoall", Operation::kAllToAll},
    {"sendrecv", Operation::kSendRecv}};
constexpr Name<v1::NcclAlgorithm> kAlgorithms[] = {{"Ring", v1::RING},
                                                   {"Tree", v1::TREE},
                                                   {"NVLS", v1::NVLS},
                                                   {"NVLSTree", v1::NVLS_TREE},
                                                   {"CollNetDirect", v1::COLLNET_DIRECT},
                                                   {"CollNetChain", v1::COLLNET_CHAIN},
                                                   {"PAT", v1::PAT},
                                                   {"P2P", v1::P2P}};
constexpr Name<v1::NcclProtocol> kProtocols[] = {{"LL", v1::LL}, {"LL128", v1::LL128}, {"Simple", v1::SIMPLE}};

template <typename Names, typename Value>
std::string NameOf(const Names& names, Value value) {
  for (const auto& entry : names) {
    if (entry.value == value) return entry.name;
  }
  return "";
}

template <typename Value, typename Names>
absl::StatusOr<Value> Find(const Names& names, const char* what, std::string_view given) {
  const std::string lower = absl::AsciiStrToLower(absl::string_view(given.data(), given.size()));
  std::vector<std::string> all;
  for (const auto& entry : names) {
    if (lower == absl::AsciiStrToLower(entry.name)) return entry.value;
    all.emplace_back(entry.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, " \"", std::string(given), "\"; allowed: ", absl::StrJoin(all, ", "), DidYouMean(std::string(given), all)));
}

}  // namespace

absl::StatusOr<Library> Library::Load(const spec::LoadOptions& options) {
  Library library;
  ABSL_ASSIGN_OR_RETURN(const std::vector<std::string> versions, spec::ListPresets("nccl", options));
  for (const std::string& name : versions) {
    if (Number(name) < 0) return absl::InvalidArgumentError(absl::StrCat("nccl/", name, ": the name is no version"));
    ABSL_RETURN_IF_ERROR(spec::LoadPreset(name, options, &library.versions_.emplace_back()));
  }
  std::sort(library.versions_.begin(), library.versions_.end(),
            [](const auto& a, const auto& b) { return Number(a.name()) < Number(b.name()); });
  return library;
}

absl::StatusOr<const v1::NcclVersion*> Library::Version(std::string_view text) const {
  const std::int64_t wanted = Number(text);
  const v1::NcclVersion* nearest = nullptr;
  for (const v1::NcclVersion& version : versions_) {
    if (wanted < 0) break;
    if (nearest == nullptr || std::abs(Number(version.name()) - wanted) < std::abs(Number(nearest->name()) - wanted)) {
      nearest = &version;
    }
  }
  if (nearest != nullptr) return nearest;
  std::vector<std::string> names;
  for (const v1::NcclVersion& version : versions_) names.push_back(version.name());
  return absl::InvalidArgumentError(
      absl::StrCat("NCCL version \"", std::string(text), "\"; allowed: a number such as ", absl::StrJoin(names, ", ")));
}

Coverage Library::CoverageOf(std::string_view text) const {
  const std::int64_t wanted = Number(text);
  if (wanted < Number(versions_.front().name()) || wanted > Number(versions_.back().name())) return Coverage::kOutside;
  const bool listed = std::any_of(versions_.begin(), versions_.end(),
                                  [&](const v1::NcclVersion& version) { return Number(version.name()) == wanted; });
  return listed ? Coverage::kListed : Coverage::kBetween;
}

std::string Library::StandIn(std::string_view text) const {
  const absl::StatusOr<const v1::NcclVersion*> used = Version(text);
  if (!used.ok() || CoverageOf(text) == Coverage::kListed) return "";
  const char* const where = CoverageOf(text) == Coverage::kBetween            ? "not listed"
                            : Number(text) < Number(versions_.front().name()) ? "older than all that are listed"
                                                                              : "newer than all that are listed";
  return absl::StrCat("NCCL ", std::string(text), " is ", where, ": the tables of ", (*used)->name(), " are used");
}

Model::Model(const Views& views, const v1::NcclVersion& version, const v1::NcclTimes& times,
             const ModelOptions& options)
    : comm_(CommonOf(views)),
      options_(options),
      channels_(SearchChannels(views, version, options.channels)),
      tuner_(comm_, channels_, version, options.sharp) {
  for (const Communicator& view : views) {
    messages_.emplace_back(view, channels_, version, times, tuner_);
    Communicator in_step = view;
    in_step.nics = comm_.nics;
    collectives_.emplace_back(in_step, channels_, version, times, tuner_);
  }
}

Duration Model::DurationOf(Operation operation, std::int64_t bytes, const Variant& variant) const {
  Duration longest;
  for (const TimeModel& time : variant.algorithm == v1::P2P ? messages_ : collectives_) {
    const Duration duration = time.Of(operation, bytes, variant);
    longest.fixed = std::max(longest.fixed, duration.fixed);
    longest.progress = std::max(longest.progress, duration.progress);
    longest.bytes.nvlink = std::max(longest.bytes.nvlink, duration.bytes.nvlink);
    longest.bytes.nic = std::max(longest.bytes.nic, duration.bytes.nic);
    longest.bytes.uplink = std::max(longest.bytes.uplink, duration.bytes.uplink);
  }
  return longest;
}

std::int64_t Model::ChannelsOf(std::int64_t bytes, const Variant& variant) const {
  if (variant.algorithm == v1::NVLS || variant.algorithm == v1::NVLS_TREE) return channels_.nvls_channels;
  if (variant.algorithm == v1::P2P) return std::min(channels_.p2p, channels_.p2p_per_peer * (comm_.ranks - 1));
  // Fewer while a thread would have less than this many bytes.
  const bool low = variant.protocol != v1::SIMPLE;
  const std::int64_t threads = variant.protocol == v1::LL128 ? 640 : 512;
  std::int64_t threshold = low ? 8 : 64;
  if (variant.protocol == v1::LL && variant.algorithm == v1::RING) threshold *= comm_.ranks;
  std::int64_t channels = channels_.communicator;
  while (channels > std::max<std::int64_t>(1, options_.channels.min) && bytes < channels * threads * threshold) {
    --channels;
  }
  return channels;
}

absl::Status Model::Refusal(Operation operation) const {
  const auto name = [](const Variant& variant) {
    const std::string pair = absl::StrCat(AlgorithmName(variant.algorithm), " ", ProtocolName(variant.protocol));
    return std::string(absl::StripAsciiWhitespace(pair));
  };
  std::vector<std::string> able;
  for (const Variant& variant : tuner_.Candidates(operation)) {
    if (tuner_.Bandwidth(operation, variant) > 0) able.push_back(name(variant));
  }
  const std::string wanted = name(options_.forced);
  std::string message = absl::StrCat(
      OperationName(operation), ": ", wanted.empty() ? "nothing can" : wanted + " cannot", " carry it out on ",
      comm_.ranks, " ranks on ", comm_.nodes, comm_.nodes == 1 ? " node" : " nodes", " of this kind");
  const std::string needs(NeedsOf(options_.forced.algorithm));
  if (!needs.empty()) absl::StrAppend(&message, "; it needs ", needs);
  if (!able.empty()) absl::StrAppend(&message, "; allowed: ", absl::StrJoin(able, ", "));
  return absl::InvalidArgumentError(message);
}

absl::StatusOr<Price> Model::PriceOf(Operation operation, std::int64_t bytes) const {
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat(bytes, " bytes; allowed: 0 and more"));
  Price price;
  if (comm_.ranks < 2 || bytes == 0) return price;
  const std::optional<Variant> variant = tuner_.Choose(operation, bytes, options_.forced);
  if (!variant.has_value()) return Refusal(operation);
  const Duration duration = DurationOf(operation, bytes, *variant);
  constexpr double kLongest = 4e6;  // seconds; either part, of what a Time can hold
  if (!(duration.fixed < kLongest && duration.progress < kLongest)) {
    return absl::InvalidArgumentError(
        absl::StrCat(OperationName(operation), " of ", bytes,
                     " bytes takes more than 46 days; allowed: fewer bytes, or faster links"));
  }
  price.variant = *variant;
  price.channels = ChannelsOf(bytes, *variant);
  price.fixed = TimeFromSeconds(duration.fixed);
  price.progress = TimeFromSeconds(duration.progress);
  price.bytes = duration.bytes;
  return price;
}

absl::StatusOr<Operation> OperationOf(std::string_view name) {
  return Find<Operation>(kOperations, "collective", name);
}
std::string OperationName(Operation operation) { return NameOf(kOperations, operation); }
std::vector<std::string> OperationNames() {
  std::vector<std::string> names;
  for (const auto& entry : kOperations) names.emplace_back(entry.name);
  return names;
}

absl::StatusOr<v1::NcclAlgorithm> AlgorithmOf(std::string_view name) {
  if (name.empty()) return v1::NCCL_ALGORITHM_UNSPECIFIED;
  return Find<v1::NcclAlgorithm>(kAlgorithms, "algorithm", name);
}
std::string AlgorithmName(v1::NcclAlgorithm algorithm) { return NameOf(kAlgorithms, algorithm); }

absl::StatusOr<v1::NcclProtocol> ProtocolOfName(std::string_view name) {
  if (name.empty()) return v1::NCCL_PROTOCOL_UNSPECIFIED;
  return Find<v1::NcclProtocol>(kProtocols, "protocol", name);
}
std::string ProtocolName(v1::NcclProtocol protocol) { return NameOf(kProtocols, protocol); }

double BusFactor(Operation operation, std::int64_t ranks) {
  const double n = static_cast<double>(ranks);
  switch (operation) {
    case Operation::kAllReduce:
      return 2 * (n - 1) / n;
    case Operation::kReduceScatter:
    case Operation::kAllGather:
    case Operation::kAllToAll:
      return (n - 1) / n;
    default:
      return 1;
  }
}

}  // namespace orrery::collectives::nccl
