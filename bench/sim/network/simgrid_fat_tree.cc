// The same by SimGrid 3.32 (S4U, model CM02 without corrections).
#include <sys/wait.h>
#include <unistd.h>
#include <simgrid/s4u.hpp>

#include <cstdio>
#include <ctime>

#include "bench/sim/network/fat_tree.h"

namespace orrery::network {
namespace {

namespace s4u = simgrid::s4u;

std::vector<s4u::Host*>* hosts_of_zone = nullptr;  // its callbacks are plain functions

std::pair<simgrid::kernel::routing::NetPoint*, simgrid::kernel::routing::NetPoint*> CreateHost(
    s4u::NetZone* zone, const std::vector<unsigned long>& /*coordinates*/, unsigned long id) {
  s4u::Host* host = zone->create_host("node" + std::to_string(id), 1e9);
  hosts_of_zone->push_back(host);
  return {host->get_netpoint(), nullptr};
}

// One actor per node, which sends and receives one message per step. Mailboxes are of one message each.
class Traffic {
 public:
  Traffic(const std::vector<std::vector<std::int32_t>>& permutations, Steps steps)
      : permutations_(permutations),
        steps_(steps),
        barrier_(s4u::Barrier::create(static_cast<unsigned>(hosts_of_zone->size()))) {
    for (std::size_t node = 0; node < hosts_of_zone->size(); ++node)
      s4u::Actor::create("node", (*hosts_of_zone)[node], [this, node] { RunNode(node); });
  }

 private:
  static s4u::Mailbox* MailboxOf(std::size_t step, std::size_t to) {
    return s4u::Mailbox::by_name(std::to_string(step) + ":" + std::to_string(to));
  }

  void RunNode(std::size_t node) {
    for (std::size_t step = 0; step < permutations_.size(); ++step) {
      const auto to = static_cast<std::size_t>(permutations_[step][node]);
      const s4u::CommPtr sent = MailboxOf(step, to)->put_async(&payload_, kMessageBytes);
      MailboxOf(step, node)->get<int>();
      sent->wait();
      if (steps_ == Steps::kTogether) barrier_->wait();
    }
  }

  const std::vector<std::vector<std::int32_t>>& permutations_;
  const Steps steps_;
  const s4u::BarrierPtr barrier_;
  int payload_ = 0;
};

SimGridRun Simulate(Cables cables, Steps steps, const std::vector<std::vector<std::int32_t>>& permutations) {
  std::vector<std::string> settings = {"simgrid",
                                       "--cfg=network/model:CM02",
                                       "--cfg=network/weight-S:0",
                                       "--cfg=network/TCP-gamma:0",
                                       "--cfg=network/crosstraffic:0",
                                       "--log=root.thresh:error"};
  std::vector<char*> argv;
  for (std::string& setting : settings) argv.push_back(setting.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  auto* engine = new s4u::Engine(&argc, argv.data());  // lives until the process ends
  std::vector<s4u::Host*> hosts;
  hosts_of_zone = &hosts;
  const auto leaves = static_cast<unsigned>(permutations[0].size() / kNodesPerLeaf);
  const s4u::FatTreeParams shape(2, {kNodesPerLeaf, leaves}, {1, kSpines}, {1, 1});
  s4u::create_fatTree_zone(
      "fat_tree", nullptr, shape, s4u::ClusterCallbacks(CreateHost), static_cast<double>(kLinkBytesPerSecond), 0,
      cables == Cables::kFullDuplex ? s4u::Link::SharingPolicy::SPLITDUPLEX : s4u::Link::SharingPolicy::SHARED)
      ->seal();
  const Traffic traffic(permutations, steps);
  SimGridRun run;
  const std::clock_t start = std::clock();
  engine->run();
  run.cpu_seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  run.end = s4u::Engine::get_clock();
  return run;
}

}  // namespace

SimGridRun RunInSimGrid(Cables cables, Steps steps, const std::vector<std::vector<std::int32_t>>& permutations) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  std::fflush(nullptr);  // lest the child print it again
  const pid_t child = fork();
  SimGridRun run;
  if (child == 0) {
    run = Simulate(cables, steps, permutations);
    _exit(write(ends[1], &run, sizeof(run)) == sizeof(run) ? 0 : 1);
  }
  close(ends[1]);
  if (read(ends[0], &run, sizeof(run)) != sizeof(run)) run = {};
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? run : SimGridRun();
}

}  // namespace orrery::network
