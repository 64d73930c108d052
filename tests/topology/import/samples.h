// Small files in the grammars that the importers read, written for these tests.
#ifndef ORRERY_TESTS_TOPOLOGY_IMPORT_SAMPLES_H_
#define ORRERY_TESTS_TOPOLOGY_IMPORT_SAMPLES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"

namespace orrery::topology {

// Two sockets of two GPUs; each GPU shares a bridge with a NIC of 200 Gb/s. Two NVSwitches, three and two links to
// each. The NICs are numbered against the GPUs.
inline std::string DumpedNode() {
  std::string xml = "<system version=\"1\">\n";
  for (int cpu = 0; cpu < 2; ++cpu) {
    absl::StrAppend(&xml, "  <cpu host_hash=\"0x1\" numaid=\"", cpu, "\" arch=\"x86_64\" vendor=\"AuthenticAMD\">\n");
    for (int gpu = 2 * cpu; gpu < 2 * cpu + 2; ++gpu) {
      const std::string i = std::to_string(gpu);
      const std::string net = std::to_string(3 - gpu);
      const std::string pcie = "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"";
      absl::StrAppend(&xml, "    <pci busid=\"0000:", i, "0:00.0\" class=\"0x060400\" ", pcie, ">\n");
      absl::StrAppend(&xml, "      <pci busid=\"0000:", i, "1:00.0\" class=\"0x030200\" ", pcie, ">\n");
      absl::StrAppend(&xml, "        <gpu dev=\"", i, "\" sm=\"80\" rank=\"", i, "\" gdr=\"1\">\n");
      xml += "          <nvlink target=\"0000:f0:00.0\" count=\"3\" tclass=\"0x068000\"/>\n";
      xml += "          <nvlink target=\"0000:f1:00.0\" count=\"2\" tclass=\"0x068000\"/>\n";
      xml += "        </gpu>\n      </pci>\n";
      absl::StrAppend(&xml, "      <pci busid=\"0000:", i, "2:00.0\" class=\"0x020700\" ", pcie, ">\n");
      absl::StrAppend(&xml, "        <nic><net name=\"mlx5_", net, "\" dev=\"", net,
                      "\" speed=\"200000\" port=\"1\" gdr=\"1\"/></nic>\n");
      xml += "      </pci>\n    </pci>\n";
    }
    xml += "  </cpu>\n";
  }
  return absl::StrCat(xml, "</system>\n");
}

// Four GPUs and four NICs in pairs, as clouds write it: no <gpu>, no <net>; bus ids against the order of the file.
inline std::string WrittenNode() {
  std::string xml = "<system version=\"1\">\n  <cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n";
  for (int pair = 3; pair >= 0; --pair) {
    const std::string i = std::to_string(pair);
    absl::StrAppend(&xml, "    <pci busid=\"ffff:0", i,
                    ":00.0\" class=\"0x060400\" link_speed=\"32 GT/s\" link_width=\"16\">\n");
    absl::StrAppend(&xml, "      <pci busid=\"000", i,
                    ":00:00.0\" class=\"0x030200\" link_speed=\"32 GT/s\" link_width=\"16\"/>\n");
    absl::StrAppend(&xml, "      <pci busid=\"010", i,
                    ":00:00.0\" class=\"0x020700\" link_speed=\"32 GT/s\" link_width=\"16\"/>\n");
    xml += "    </pci>\n";
  }
  return absl::StrCat(xml, "  </cpu>\n</system>\n");
}

// As nvidia-smi topo -m has it: two GPUs per NIC, a management NIC first, an escape sequence around the header.
inline std::string Matrix() {
  return "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
         "GPU0\t X \tNV4\tNV4\tNV4\tNODE\tSYS\tPIX\t0-31\t0\t\tN/A\n"
         "GPU1\tNV4\t X \tNV4\tNV4\tNODE\tSYS\tPIX\t0-31\t0\t\tN/A\n"
         "GPU2\tNV4\tNV4\t X \tNV4\tSYS\tPIX\tSYS\t32-63\t1\t\tN/A\n"
         "GPU3\tNV4\tNV4\tNV4\t X \tSYS\tPIX\tSYS\t32-63\t1\t\tN/A\n"
         "NIC0\tNODE\tNODE\tSYS\tSYS\t X \tSYS\tNODE\n"
         "NIC1\tSYS\tSYS\tPIX\tPIX\tSYS\t X \tSYS\n"
         "NIC2\tPIX\tPIX\tSYS\tSYS\tNODE\tSYS\t X \n"
         "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
         "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n  NIC2: mlx5_2\n";
}

// A two-level fat tree as ibnetdiscover prints it: `hosts` "node<i>" with `rails` HCAs "mlx5_<j>", `per_leaf` of them
// under each group of leaves (a leaf per rail), `spines` spines with `uplinks` cables from each leaf. Every cable
// stands there from both ends.
struct FatTree {
  int hosts = 8;
  int rails = 2;
  int per_leaf = 4;
  int spines = 2;
  int uplinks = 2;  // to each spine
  std::string rate = "4xNDR";
  // Of the first cable between a leaf and a spine, from both ends; empty: as the others.
  std::string first_uplink = {};
};

inline std::string Guid(char kind, int tens, int number) {
  std::string digits = std::to_string(100000 + tens * 10000 + number);
  return absl::StrCat(std::string(1, kind), "-00000000000", digits.substr(1));
}

inline std::string Discovered(const FatTree& tree) {
  const int groups = (tree.hosts + tree.per_leaf - 1) / tree.per_leaf;
  std::string text = "#\n# Topology file: generated for a test\n#\n";
  const auto leaf_name = [](int leaf) { return absl::StrCat("\"MF0;leaf", leaf, ":QM/U1\""); };
  const auto spine_name = [](int spine) { return absl::StrCat("\"MF0;spine", spine, ":QM/U1\""); };
  const auto rate_of = [&](int leaf, int spine, int cable) {
    return leaf == 0 && spine == 0 && cable == 0 && !tree.first_uplink.empty() ? tree.first_uplink : tree.rate;
  };
  const auto header = [&](const std::string& guid, const std::string& name) {
    text += "\nvendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x1\nswitchguid=0x1(1)\n";
    absl::StrAppend(&text, "Switch\t64 \"", guid, "\"\t\t# ", name, " enhanced port 0 lid 1 lmc 0\n");
  };
  for (int leaf = 0; leaf < groups * tree.rails; ++leaf) {
    header(Guid('S', 0, leaf), leaf_name(leaf));
    const int group = leaf / tree.rails;
    const int rail = leaf % tree.rails;
    for (int i = 0; i < tree.per_leaf && group * tree.per_leaf + i < tree.hosts; ++i) {
      const int host = group * tree.per_leaf + i;
      absl::StrAppend(&text, "[", i + 1, "]\t\"", Guid('H', rail, host), "\"[1](1) \t\t# \"node", host, " mlx5_", rail,
                      "\" lid 9 ", tree.rate, "\n");
    }
    for (int spine = 0; spine < tree.spines; ++spine) {
      for (int cable = 0; cable < tree.uplinks; ++cable) {
        absl::StrAppend(&text, "[", 33 + spine * tree.uplinks + cable, "]\t\"", Guid('S', 1, spine), "\"[",
                        1 + leaf * tree.uplinks + cable, "]\t\t# ", spine_name(spine), " lid 7 ",
                        rate_of(leaf, spine, cable), "\n");
      }
    }
  }
  for (int spine = 0; spine < tree.spines; ++spine) {
    header(Guid('S', 1, spine), spine_name(spine));
    for (int leaf = 0; leaf < groups * tree.rails; ++leaf) {
      for (int cable = 0; cable < tree.uplinks; ++cable) {
        absl::StrAppend(&text, "[", 1 + leaf * tree.uplinks + cable, "]\t\"", Guid('S', 0, leaf), "\"[",
                        33 + spine * tree.uplinks + cable, "]\t\t# ", leaf_name(leaf), " lid 8 ",
                        rate_of(leaf, spine, cable), "\n");
      }
    }
  }
  for (int host = 0; host < tree.hosts; ++host) {
    for (int rail = 0; rail < tree.rails; ++rail) {
      text += "\nvendid=0x2c9\ndevid=0x1021\nsysimgguid=0x2\ncaguid=0x2\n";
      absl::StrAppend(&text, "Ca\t1 \"", Guid('H', rail, host), "\"\t\t# \"node", host, " mlx5_", rail, "\"\n");
      absl::StrAppend(&text, "[1](1) \t\"", Guid('S', 0, host / tree.per_leaf * tree.rails + rail), "\"[",
                      host % tree.per_leaf + 1, "]\t\t# lid 9 lmc 0 ",
                      leaf_name(host / tree.per_leaf * tree.rails + rail), " lid 8 ", tree.rate, "\n");
    }
  }
  return text;
}

// Of ibsim: two hosts on one switch.
inline std::string Simulated() {
  return "# two hosts\nSwitch 8 \"Sw\"\n[1] \"HcaA\"[1]\n[2] \"HcaB\"[1]\n\nHca 1 \"HcaA\"\n[1] \"Sw\"[1]\n\nHca 1 "
         "\"HcaB\"\n[1] \"Sw\"[2]\n";
}

inline std::string Channels() {
  return "<graphs version=\"1\">\n"
         "  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"20\" speedinter=\"10\" "
         "typeintra=\"NVL\" "
         "typeinter=\"PIX\" samechannels=\"0\">\n"
         "    <channel><net dev=\"0\"/><gpu dev=\"1\"/><gpu dev=\"0\"/><net dev=\"0\"/></channel>\n  "
         "</graph>\n</graphs>\n";
}

inline std::string Replaced(const std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos)
    return absl::StrCat("not found: ", std::string(from));  // fails whatever the test expects
  return absl::StrCat(text.substr(0, at), std::string(to), text.substr(at + from.size()));
}

}  // namespace orrery::topology

#endif  // ORRERY_TESTS_TOPOLOGY_IMPORT_SAMPLES_H_
