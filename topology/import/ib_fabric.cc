#include "topology/import/ib_fabric.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "topology/import/text.h"

namespace orrery::topology {
namespace {

constexpr std::int64_t kMostPorts = 65535;

struct Lane {
  std::string_view name;
  double bytes_per_second;  // of data: signalling less 8b/10b up to QDR, 64b/66b from FDR10 on
};
// InfiniBand Architecture Specification, volume 2: rates per lane.
constexpr Lane kLanes[] = {
    {"SDR", 0.25e9},  {"DDR", 0.5e9},  {"QDR", 1e9},    {"FDR10", 1.25e9}, {"FDR", 14.0625e9 / 8 * 64 / 66},
    {"EDR", 3.125e9}, {"HDR", 6.25e9}, {"NDR", 12.5e9}, {"XDR", 25e9}};

// Takes pieces off the front of a line.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  void SkipSpaces() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\t')) text_.remove_prefix(1);
  }
  // What stands between `open` and `close`, which must come next.
  std::optional<std::string_view> Between(char open, char close) {
    SkipSpaces();
    if (text_.empty() || text_.front() != open) return std::nullopt;
    const std::size_t end = text_.find(close, 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }
  // A number in brackets; "1][ext 3" is port 1 of the board's labels.
  std::optional<std::int64_t> Port() {
    const std::optional<std::string_view> inside = Between('[', ']');
    return inside.has_value() ? ParseCount(*inside, kMostPorts) : std::nullopt;
  }
  std::string_view Word() {
    SkipSpaces();
    std::size_t size = 0;
    while (size < text_.size() && text_[size] != ' ' && text_[size] != '\t') ++size;
    const std::string_view word = text_.substr(0, size);
    text_.remove_prefix(size);
    return word;
  }
  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
};

// What stands in the first pair of double quotes; empty: none.
std::string FirstQuoted(std::string_view text) {
  const std::size_t begin = text.find('"');
  const std::size_t end = begin == std::string_view::npos ? begin : text.find('"', begin + 1);
  return end == std::string_view::npos ? "" : Printable(text.substr(begin + 1, end - begin - 1));
}

// The last word that is a rate, as descriptions stand before it.
std::string_view RateIn(std::string_view text) {
  const std::size_t quote = text.rfind('"');
  if (quote != std::string_view::npos) text.remove_prefix(quote + 1);
  std::string_view rate;
  for (const std::string_view word : Words(text)) {
    const std::size_t x = word.find('x');
    if (x == std::string_view::npos || !ParseCount(word.substr(0, x), 64).has_value()) continue;
    rate = word.substr(0, word.find('('));  // newer tools append the rate in Gb/s
  }
  return rate;
}

class Reader {
 public:
  Reader(const std::string& file, Findings* findings) : file_(file), findings_(*findings) { fabric_.source = file; }

  absl::StatusOr<IbFabric> Read(std::string_view text) {
    for (const TextLine& line : SplitLines(text)) ABSL_RETURN_IF_ERROR(ReadLine(line));
    if (fabric_.devices.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(file_,
                                                     ": no record of a switch or HCA; allowed: what ibnetdiscover "
                                                     "prints without options, or a .net file of ibsim"));
    }
    for (const IbDevice& device : fabric_.devices) {
      if (device.is_listed || !device.is_switch) continue;
      findings_.Warn(
          "switches without a record",
          absl::StrCat(Place(file_, device.line), ": switch ", device.id,
                       " is named but has no record of its own (an excerpt?); only its cables to others are known"));
    }
    MarkDegraded();
    return std::move(fabric_);
  }

 private:
  absl::Status Error(const TextLine& line, const std::string& message) const {
    return absl::InvalidArgumentError(absl::StrCat(Place(file_, line.number), ": ", message));
  }

  absl::Status ReadLine(const TextLine& line) {
    const std::string_view text = line.text;
    if (text.empty() || text.front() == '#') return absl::OkStatus();
    if (text.front() == '[') return ReadPort(line);
    Cursor cursor(text);
    const std::string_view word = cursor.Word();
    if (word == "Switch") return ReadRecord(line, true, cursor);
    if (word == "Ca" || word == "Hca" || word == "Rt") return ReadRecord(line, false, cursor);
    const std::size_t equals = word.find('=');
    for (const std::string_view key : {"vendid", "devid", "sysimgguid", "switchguid", "caguid", "rtguid", "module"}) {
      if (equals != std::string_view::npos && word.substr(0, equals) == key) return absl::OkStatus();
    }
    if (text.starts_with("DR path") || text.starts_with("Chassis")) return absl::OkStatus();
    return Error(line, absl::StrCat(Quote(text), ": neither a record, a port nor a comment of ibnetdiscover"));
  }

  // Switch|Ca <ports> "<id>"  # "<description>" ...
  absl::Status ReadRecord(const TextLine& line, bool is_switch, Cursor cursor) {
    const std::optional<std::int64_t> ports = ParseCount(cursor.Word(), kMostPorts);
    if (!ports.has_value())
      return Error(line, absl::StrCat("no number of ports from 0 to ", kMostPorts, " behind the record's first word"));
    const std::optional<std::string_view> id = cursor.Between('"', '"');
    if (!id.has_value() || id->empty()) return Error(line, "no name in double quotes behind the number of ports");
    const int index = DeviceOf(*id, line.number);
    IbDevice& device = fabric_.devices[static_cast<std::size_t>(index)];
    if (device.is_listed) {
      return Error(line, absl::StrCat(Quote(*id), " has a record in line ", device.line, " too"));
    }
    device.is_listed = true;
    device.is_switch = is_switch;
    device.line = line.number;
    current_ = index;
    ports_ = *ports;
    const std::size_t comment = cursor.rest().find('#');
    if (comment == std::string_view::npos) return absl::OkStatus();
    const std::string description = FirstQuoted(cursor.rest().substr(comment));
    if (!description.empty()) device.description = description;
    return absl::OkStatus();
  }

  // [port](guid) "<id>"[port](guid)  # ... "<description>" ... <width>x<speed>
  absl::Status ReadPort(const TextLine& line) {
    if (!current_.has_value()) return Error(line, "a port before any Switch or Ca record");
    Cursor cursor(line.text);
    const std::optional<std::int64_t> port = cursor.Port();
    if (!port.has_value()) return Error(line, absl::StrCat("no port number from 0 to ", kMostPorts, " in brackets"));
    while (cursor.Between('[', ']').has_value()) {  // labels of the board
    }
    cursor.Between('(', ')');
    const std::optional<std::string_view> peer = cursor.Between('"', '"');
    if (!peer.has_value() || peer->empty()) return Error(line, "no name of the other end in double quotes");
    const std::optional<std::int64_t> peer_port = cursor.Port();
    if (!peer_port.has_value())
      return Error(line, absl::StrCat("no port number from 0 to ", kMostPorts, " behind the name of the other end"));
    if (*port > ports_ && ports_ > 0) {
      findings_.Warn("ports beyond the stated number",
                     absl::StrCat(Place(file_, line.number), ": port ", *port, " of a device with ", ports_, " ports"));
    }
    const int other = DeviceOf(*peer, line.number);
    const std::size_t comment = cursor.rest().find('#');
    const std::string_view remark =
        comment == std::string_view::npos ? std::string_view() : cursor.rest().substr(comment);
    IbDevice& device = fabric_.devices[static_cast<std::size_t>(other)];
    if (device.description.empty()) device.description = FirstQuoted(remark);
    if (const auto [known, is_new] = ports_seen_.emplace(std::pair(*current_, *port), line.number); !is_new) {
      return Error(line, absl::StrCat("port ", *port, " of ", fabric_.devices[static_cast<std::size_t>(*current_)].id,
                                      " stands in line ", known->second, " too"));
    }
    return AddCable(line, IbCable{.a = *current_,
                                  .b = other,
                                  .port_a = *port,
                                  .port_b = *peer_port,
                                  .rate = Printable(RateIn(remark)),
                                  .line = line.number});
  }

  absl::Status AddCable(const TextLine& line, IbCable cable) {
    cable.bandwidth = IbBandwidth(cable.rate);
    if (!cable.rate.empty() && cable.bandwidth == 0) {
      findings_.Warn("rates", absl::StrCat(Place(file_, line.number), ": rate ", Quote(cable.rate),
                                           " is not known; taken as the fastest of its ends"));
    }
    if (cable.a == cable.b) {
      findings_.Warn("cables from a device to itself",
                     absl::StrCat(Place(file_, line.number), ": a cable of ", Name(cable.a), " to itself; left out"));
      return absl::OkStatus();
    }
    const auto near = cable_at_.find({cable.a, cable.port_a});
    const auto far = cable_at_.find({cable.b, cable.port_b});
    if (near == cable_at_.end() && far == cable_at_.end()) {
      const std::size_t index = fabric_.cables.size();
      cable_at_[{cable.a, cable.port_a}] = index;
      cable_at_[{cable.b, cable.port_b}] = index;
      fabric_.cables.push_back(std::move(cable));
      return absl::OkStatus();
    }
    if (near == cable_at_.end() || far == cable_at_.end() || near->second != far->second) {
      const std::size_t known = far != cable_at_.end() ? far->second : near->second;
      findings_.Warn("ends that disagree",
                     absl::StrCat(Place(file_, line.number), ": a port of this cable is that of the cable in line ",
                                  fabric_.cables[known].line, " too; this one is left out"));
      return absl::OkStatus();
    }
    IbCable& first = fabric_.cables[near->second];
    if (first.bandwidth != cable.bandwidth && cable.bandwidth > 0) {
      findings_.Warn("ends that disagree", absl::StrCat(Place(file_, line.number), ": ", cable.rate, " here, ",
                                                        first.rate, " in line ", first.line, "; taken: the slower"));
      if (first.bandwidth == 0 || cable.bandwidth < first.bandwidth) {
        first.bandwidth = cable.bandwidth;
        first.rate = cable.rate;
      }
    }
    return absl::OkStatus();
  }

  int DeviceOf(std::string_view id, std::int64_t line) {
    const auto [found, is_new] = index_of_.emplace(std::string(id), static_cast<int>(fabric_.devices.size()));
    if (is_new) {
      IbDevice device{.id = Printable(id), .is_switch = id.starts_with("S-"), .description = {}, .line = line};
      fabric_.devices.push_back(std::move(device));
    }
    return found->second;
  }

  std::string Name(int device) const { return fabric_.devices[static_cast<std::size_t>(device)].id; }

  // Between switches: below the fastest cable that both ends have. To an HCA, which may have one port only: below what
  // most HCAs of the fabric run at.
  void MarkDegraded() {
    std::vector<double> fastest(fabric_.devices.size(), 0);
    std::map<double, std::int64_t> hca_rates;
    for (const IbCable& cable : fabric_.cables) {
      for (const int end : {cable.a, cable.b}) {
        fastest[static_cast<std::size_t>(end)] = std::max(fastest[static_cast<std::size_t>(end)], cable.bandwidth);
      }
      if (!BetweenSwitches(cable)) ++hca_rates[cable.bandwidth];
    }
    std::pair<double, std::int64_t> usual{0, 0};
    for (const auto& rate : hca_rates) {
      if (rate.second >= usual.second) usual = rate;
    }
    for (IbCable& cable : fabric_.cables) {
      const double both =
          std::min(fastest[static_cast<std::size_t>(cable.a)], fastest[static_cast<std::size_t>(cable.b)]);
      if (cable.bandwidth == 0) cable.bandwidth = both > 0 ? both : FasterEnd(fastest, cable);
      const double expected = BetweenSwitches(cable) ? both : std::max(both, usual.first);
      if (cable.bandwidth >= expected) continue;
      cable.is_degraded = true;
      findings_.Warn("degraded cables",
                     absl::StrCat(Place(file_, cable.line), ": degraded cable: ", Name(cable.a), " port ", cable.port_a,
                                  " - ", Name(cable.b), " port ", cable.port_b, " runs at ", cable.rate, ", ",
                                  cable.bandwidth / 1e9, " GB/s, where ",
                                  BetweenSwitches(cable) ? "both ends reach " : "most HCAs have ", expected / 1e9));
    }
  }

  static double FasterEnd(const std::vector<double>& fastest, const IbCable& cable) {
    return std::max(fastest[static_cast<std::size_t>(cable.a)], fastest[static_cast<std::size_t>(cable.b)]);
  }

  bool BetweenSwitches(const IbCable& cable) const {
    return fabric_.devices[static_cast<std::size_t>(cable.a)].is_switch &&
           fabric_.devices[static_cast<std::size_t>(cable.b)].is_switch;
  }

  const std::string& file_;
  Findings& findings_;
  IbFabric fabric_;
  std::map<std::string, int> index_of_;
  std::map<std::pair<int, std::int64_t>, std::int64_t> ports_seen_;  // line by device and port
  std::map<std::pair<int, std::int64_t>, std::size_t> cable_at_;     // by device and port
  std::optional<int> current_;
  std::int64_t ports_ = 0;
};

}  // namespace

double IbBandwidth(std::string_view rate) {
  const std::size_t x = rate.find('x');
  if (x == std::string_view::npos) return 0;
  const std::optional<std::int64_t> lanes = ParseCount(rate.substr(0, x), 64);
  if (!lanes.has_value()) return 0;
  for (const Lane& lane : kLanes) {
    if (lane.name == rate.substr(x + 1)) return lane.bytes_per_second * static_cast<double>(*lanes);
  }
  return 0;
}

absl::StatusOr<IbFabric> ReadIbFabric(std::string_view text, const std::string& file, Findings* findings) {
  return Reader(file, findings).Read(text);
}

}  // namespace orrery::topology
