#include "tests/sim/network/simgrid.h"

#include <sys/wait.h>
#include <unistd.h>
#include <simgrid/s4u.hpp>

#include <cstdio>
#include <functional>

namespace orrery::network {
namespace {

namespace s4u = simgrid::s4u;

// More than any latency below, so that no flow would have to start before 0.
constexpr double kLatencyOfWeight1 = 0.012;

// L07's solver "bmf" finds no solution in bytes: its precision is absolute.
constexpr double kGigabyte = 1e9;

// What `simulate` puts into its argument, from a child process.
std::vector<double> InChild(std::size_t count, const std::function<void(std::vector<double>&)>& simulate) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  std::fflush(nullptr);  // lest the child print it again
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    std::vector<double> result(count, -1);
    simulate(result);
    const auto size = static_cast<ssize_t>(count * sizeof(double));
    _exit(write(ends[1], result.data(), count * sizeof(double)) == size ? 0 : 1);
  }
  close(ends[1]);
  std::vector<double> result(count);
  std::size_t got = 0;
  const std::size_t size = count * sizeof(double);
  while (got < size) {
    const ssize_t n = read(ends[0], reinterpret_cast<char*>(result.data()) + got, size - got);
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (got != size || status != 0) result.clear();
  return result;
}

std::vector<std::string> Settings(const std::vector<std::string>& more) {
  std::vector<std::string> settings = {"simgrid",
                                       "--cfg=network/model:CM02",
                                       "--cfg=network/weight-S:0",
                                       "--cfg=network/TCP-gamma:0",
                                       "--cfg=network/crosstraffic:0",
                                       "--cfg=surf/precision:1e-12",
                                       "--cfg=maxmin/precision:1e-9",
                                       "--cfg=network/optim:Full",  // the default, Lazy, overloads links at times
                                       "--log=root.thresh:error"};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

class Platform {
 public:
  // `unit`: what the simulation calls a byte, in bytes.
  Platform(const std::vector<std::int64_t>& capacities, double unit, std::vector<std::string> settings) {
    std::vector<char*> argv;
    for (std::string& setting : settings) argv.push_back(setting.data());
    int argc = static_cast<int>(argv.size());
    argv.push_back(nullptr);
    // Lives until the process ends.
    engine_ = new s4u::Engine(&argc, argv.data());
    zone_ = s4u::create_full_zone("zone");
    for (std::size_t l = 0; l < capacities.size(); ++l)
      links_.push_back(
          zone_->create_link(std::to_string(l), static_cast<double>(capacities[l]) / unit)->set_latency(0)->seal());
  }

  // Two new hosts; their route has the given links and, where latency is not 0, one of their own with that latency and
  // the cap as its bandwidth: one-sided transfers ignore a rate.
  std::pair<s4u::Host*, s4u::Host*> AddPair(const SimGridPath& path, double latency, double cap) {
    const std::string name = std::to_string(pairs_++);
    s4u::Host* from = zone_->create_host("from" + name, 1e9);
    s4u::Host* to = zone_->create_host("to" + name, 1e9);
    std::vector<s4u::LinkInRoute> route;
    for (const std::int32_t l : path.links) route.emplace_back(links_[static_cast<std::size_t>(l)]);
    if (latency > 0)
      route.emplace_back(zone_->create_link("own" + name, cap > 0 ? cap : 1e15)->set_latency(latency)->seal());
    zone_->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
    return {from, to};
  }

  void Run() {
    zone_->seal();
    for (auto& [host, body] : actors_) s4u::Actor::create("actor", host, body);
    engine_->run();
  }

  void AddActor(s4u::Host* host, std::function<void()> body) { actors_.emplace_back(host, std::move(body)); }

 private:
  s4u::Engine* engine_ = nullptr;
  s4u::NetZone* zone_ = nullptr;
  std::vector<s4u::Link*> links_;
  std::vector<std::pair<s4u::Host*, std::function<void()>>> actors_;
  int pairs_ = 0;
};

}  // namespace

std::vector<double> FlowEndsInSimGrid(const std::vector<std::int64_t>& capacities,
                                      const std::vector<SimGridTask>& tasks) {
  return InChild(tasks.size(), [&](std::vector<double>& ends) {
    Platform platform(capacities, 1, Settings({}));
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const SimGridTask& task = tasks[i];
      const double latency = kLatencyOfWeight1 / task.weight;
      const auto [from, to] = platform.AddPair(task.paths[0], latency, task.rate_cap);
      platform.AddActor(from, [&ends, &task, i, latency, from = from, to = to] {
        s4u::this_actor::sleep_for(task.start + kLatencyOfWeight1 - latency);
        s4u::Comm::sendto(from, to, static_cast<std::uint64_t>(task.paths[0].bytes));
        ends[i] = s4u::Engine::get_clock() - kLatencyOfWeight1;
      });
    }
    platform.Run();
  });
}

std::vector<double> CoupledEndsInSimGrid(const std::vector<std::int64_t>& capacities,
                                         const std::vector<SimGridTask>& tasks) {
  return InChild(tasks.size(), [&](std::vector<double>& ends) {
    Platform platform(capacities, kGigabyte, Settings({"--cfg=host/model:ptask_L07", "--cfg=host/solver:bmf"}));
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const SimGridTask& task = tasks[i];
      std::vector<s4u::Host*> hosts;
      const std::size_t num_hosts = 2 * task.paths.size();
      std::vector<double> bytes(num_hosts * num_hosts);
      for (std::size_t p = 0; p < task.paths.size(); ++p) {
        const auto [from, to] = platform.AddPair(task.paths[p], 0, 0);
        hosts.insert(hosts.end(), {from, to});
        bytes[2 * p * num_hosts + 2 * p + 1] = task.paths[p].bytes / kGigabyte;
      }
      platform.AddActor(hosts[0], [&ends, &task, i, hosts, bytes] {
        s4u::this_actor::sleep_for(task.start);
        s4u::this_actor::parallel_execute(hosts, std::vector<double>(hosts.size()), bytes);
        ends[i] = s4u::Engine::get_clock();
      });
    }
    platform.Run();
  });
}

}  // namespace orrery::network
