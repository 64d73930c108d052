#include "tests/sim/engine/longest_path.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

#include "absl/status/status.h"
#include "sim/engine/timeline_hash.h"

namespace orrery::engine::testing {
namespace {

using Node = std::size_t;

// "`to` is not before `from` + weight."
struct Edge {
  Node from;
  Node to;
  Time weight;
};

class Graph {
 public:
  Node Add() { return nodes_++; }
  void Link(Node from, Node to, Time weight = Time()) { edges_.push_back({from, to, weight}); }

  // Longest path from time zero to every node, which may begin anywhere.
  absl::StatusOr<std::vector<Time>> Solve() const {
    std::vector<std::size_t> first(nodes_ + 1, 0);
    std::vector<std::size_t> incoming(nodes_, 0);
    for (const Edge& edge : edges_) {
      ++first[edge.from + 1];
      ++incoming[edge.to];
    }
    for (std::size_t i = 0; i < nodes_; ++i) first[i + 1] += first[i];
    std::vector<std::size_t> by_source(edges_.size());
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    for (std::size_t e = 0; e < edges_.size(); ++e) by_source[next[edges_[e].from]++] = e;

    std::vector<Time> at(nodes_);
    std::vector<Node> open;
    for (Node node = 0; node < nodes_; ++node) {
      if (incoming[node] == 0) open.push_back(node);
    }
    for (std::size_t done = 0; done < open.size(); ++done) {
      const Node node = open[done];
      for (std::size_t i = first[node]; i < first[node + 1]; ++i) {
        const Edge& edge = edges_[by_source[i]];
        at[edge.to] = std::max(at[edge.to], at[node] + edge.weight);
        if (--incoming[edge.to] == 0) open.push_back(edge.to);
      }
    }
    if (open.size() != nodes_) return absl::FailedPreconditionError("the graph has a cycle");
    return at;
  }

 private:
  std::size_t nodes_ = 0;
  std::vector<Edge> edges_;
};

struct OpNodes {
  Node ready;
  Node start;
  Node end;
  std::vector<Node> transfers;  // kExchange: begin of each part
};

class Builder {
 public:
  Builder(const World& world, int iterations) : world_(world), iterations_(iterations) {}

  absl::StatusOr<LongestPath> Solve() {
    for (int k = 0; k <= iterations_ + 1; ++k) AddIteration(k);
    auto at = graph_.Solve();
    if (!at.ok()) return at.status();
    return Collect(*at);
  }

 private:
  const Program& ProgramOf(std::size_t unit) const {
    return world_.programs[static_cast<std::size_t>(world_.units[unit].program)];
  }

  void AddIteration(int k) {
    ops_.emplace_back(world_.units.size());
    host_.emplace_back(world_.units.size());
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      for (std::size_t i = 0; i < ProgramOf(u).ops.size(); ++i) {
        ops_.back()[u].push_back({graph_.Add(), graph_.Add(), graph_.Add(), {}});
      }
      for (std::size_t h = 0; h < ProgramOf(u).host_ops.size(); ++h) host_.back()[u].push_back(graph_.Add());
    }
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      LinkHost(k, u);
      LinkStreams(k, u);
      for (std::size_t i = 0; i < ProgramOf(u).ops.size(); ++i) LinkOp(k, u, i);
    }
    LinkMessages(k);
    LinkGroups(k);
  }

  OpNodes& Nodes(int k, std::size_t u, std::size_t op) { return ops_[static_cast<std::size_t>(k)][u][op]; }
  Node HostNode(int k, std::size_t u, std::size_t h) const { return host_[static_cast<std::size_t>(k)][u][h]; }

  Node EventNode(int k, std::size_t u, std::int32_t event) {
    const auto& ops = ProgramOf(u).ops;
    const auto it = std::find_if(ops.begin(), ops.end(), [event](const Op& op) { return op.records == event; });
    return Nodes(k, u, static_cast<std::size_t>(it - ops.begin())).end;
  }

  void LinkHost(int k, std::size_t u) {
    const auto& host_ops = ProgramOf(u).host_ops;
    for (std::size_t h = 0; h < host_ops.size(); ++h) {
      if (h > 0) graph_.Link(HostNode(k, u, h - 1), HostNode(k, u, h), host_ops[h - 1].duration);
      if (host_ops[h].waits != kNoEvent) graph_.Link(EventNode(k, u, host_ops[h].waits), HostNode(k, u, h));
    }
    if (k > 0) graph_.Link(HostNode(k - 1, u, host_ops.size() - 1), HostNode(k, u, 0), host_ops.back().duration);
  }

  void LinkStreams(int k, std::size_t u) {
    const auto& ops = ProgramOf(u).ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      // The operation before on the same stream: in this iteration, or the stream's last in the previous one.
      const auto before = [&](std::size_t limit) {
        for (std::size_t j = limit; j-- > 0;) {
          if (ops[j].stream == ops[i].stream) return j;
        }
        return ops.size();
      };
      if (const std::size_t j = before(i); j < ops.size()) {
        graph_.Link(Nodes(k, u, j).end, Nodes(k, u, i).ready);
      } else if (k > 0) {
        graph_.Link(Nodes(k - 1, u, before(ops.size())).end, Nodes(k, u, i).ready);
      }
    }
  }

  void LinkOp(int k, std::size_t u, std::size_t i) {
    const Program& program = ProgramOf(u);
    const Op& op = program.ops[i];
    const OpNodes& nodes = Nodes(k, u, i);
    const Node host = HostNode(k, u, static_cast<std::size_t>(op.host_op));
    for (std::int32_t event : op.waits) {
      if (event == kNoEvent) break;
      graph_.Link(EventNode(k, u, event), nodes.ready);
    }
    graph_.Link(nodes.ready, nodes.start);
    graph_.Link(nodes.start, nodes.end);
    if (op.num_segments == 0) {
      graph_.Link(host, nodes.ready, op.issue);
      return;
    }
    Node previous = nodes.start;
    Time duration;
    for (std::int32_t s = op.first_segment; s < op.first_segment + op.num_segments; ++s) {
      const Segment& segment = program.segments[static_cast<std::size_t>(s)];
      if (s == op.first_segment) graph_.Link(host, nodes.ready, segment.issue);
      const Node begin = graph_.Add();
      graph_.Link(previous, begin, duration);
      graph_.Link(host, begin, segment.issue);
      previous = begin;
      duration = segment.duration;
    }
    graph_.Link(previous, nodes.end, duration);
  }

  struct End {
    std::size_t unit;
    std::size_t op;
  };

  void LinkMessages(int k) {
    // Sends by (unit, channel, sequence) of the sender, receives by those of their sender too.
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, End> sends;
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      VisitParts(u, [&](std::size_t op, const Part& part) {
        if (part.is_send) sends[{static_cast<std::int32_t>(u), part.channel, part.sequence}] = {u, op};
      });
    }
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      VisitParts(u, [&](std::size_t op, const Part& part) {
        if (part.is_send) return;
        const Peer& peer = world_.units[u].peers[static_cast<std::size_t>(part.channel)];
        const End send = sends.at({peer.unit, peer.channel, part.sequence});
        OpNodes& from = Nodes(k, send.unit, send.op);
        OpNodes& to = Nodes(k, u, op);
        if (ProgramOf(u).ops[op].kind == OpKind::kLocal) {
          graph_.Link(from.end, to.start, part.duration);
          return;
        }
        const Node begin = graph_.Add();
        graph_.Link(from.ready, begin);
        graph_.Link(to.ready, begin);
        graph_.Link(begin, from.end, part.duration);
        graph_.Link(begin, to.end, part.duration);
        from.transfers.push_back(begin);
        to.transfers.push_back(begin);
      });
    }
  }

  template <typename Visitor>
  void VisitParts(std::size_t u, Visitor&& visit) const {
    const Program& program = ProgramOf(u);
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      const Op& op = program.ops[i];
      if (op.kind == OpKind::kCollective) continue;
      for (std::int32_t p = op.first_part; p < op.first_part + op.num_parts; ++p) {
        visit(i, program.parts[static_cast<std::size_t>(p)]);
      }
    }
  }

  void LinkGroups(int k) {
    std::map<std::pair<std::int32_t, std::int32_t>, Node> meetings;  // by (group, use)
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      const auto& ops = ProgramOf(u).ops;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        if (ops[i].kind != OpKind::kCollective) continue;
        const std::int32_t group = world_.units[u].groups[static_cast<std::size_t>(ops[i].group)];
        const std::pair key(group, ops[i].use);
        if (!meetings.contains(key)) meetings[key] = graph_.Add();
        graph_.Link(Nodes(k, u, i).ready, meetings[key]);
        graph_.Link(meetings[key], Nodes(k, u, i).start, ops[i].lead);
        graph_.Link(Nodes(k, u, i).start, Nodes(k, u, i).end, ops[i].duration);
      }
    }
  }

  LongestPath Collect(const std::vector<Time>& at) const {
    LongestPath path;
    path.iterations = iterations_;
    for (int k = 0; k <= iterations_ + 1; ++k) {
      const auto& units = ops_[static_cast<std::size_t>(k)];
      path.ops.emplace_back(units.size());
      path.host_starts.emplace_back(units.size());
      for (std::size_t u = 0; u < units.size(); ++u) {
        for (Node node : host_[static_cast<std::size_t>(k)][u]) path.host_starts.back()[u].push_back(at[node]);
        for (std::size_t i = 0; i < units[u].size(); ++i) {
          const OpNodes& nodes = units[u][i];
          OpTimes times = {at[nodes.ready], at[nodes.start], at[nodes.end]};
          // An exchange starts with the earliest of its parts: the one instant that is a minimum, and nothing depends
          // on it.
          if (!nodes.transfers.empty()) {
            times.start = at[nodes.transfers.front()];
            for (Node node : nodes.transfers) times.start = std::min(times.start, at[node]);
          }
          path.ops.back()[u].push_back(times);
        }
      }
    }
    AddEndsAndHashes(world_, &path);
    return path;
  }

  const World& world_;
  const int iterations_;
  Graph graph_;
  std::vector<std::vector<std::vector<OpNodes>>> ops_;  // [iteration][unit][op]
  std::vector<std::vector<std::vector<Node>>> host_;    // [iteration][unit][host op]
};

}  // namespace

void AddEndsAndHashes(const World& world, LongestPath* path) {
  path->unit_hashes.assign(world.units.size(), 0);
  for (std::size_t k = 0; k < path->ops.size(); ++k) {
    Time& iteration_end = path->iteration_ends.emplace_back();
    for (std::size_t u = 0; u < world.units.size(); ++u) {
      const Program& program = world.programs[static_cast<std::size_t>(world.units[u].program)];
      const std::vector<OpTimes>& ops = path->ops[k][u];
      iteration_end = std::max(iteration_end, ops[static_cast<std::size_t>(program.update_op)].end);
      if (static_cast<int>(k) > path->iterations) continue;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        path->unit_hashes[u] += TimelineHash(static_cast<std::int32_t>(k), program.ops[i].stream,
                                             static_cast<std::int32_t>(i), ops[i].start, ops[i].end);
      }
    }
  }
  for (std::size_t u = 0; u < world.units.size(); ++u) {
    path->timeline_hash += static_cast<std::uint64_t>(world.units[u].multiplicity) * path->unit_hashes[u];
  }
}

absl::StatusOr<LongestPath> FindLongestPath(const World& world, int iterations) {
  return Builder(world, iterations).Solve();
}

}  // namespace orrery::engine::testing
