#include <fabric/base/assert.hpp>
#include <fabric/kernel/composition.hpp>
#include <fabric/kernel/xfrm.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <unistd.h>

#include "world.hpp"

/// How fast our driver programs the kernel, beside `ip -batch` with the same objects on the same kernel in the same
/// run: programming_bench [SAS [CLUSTERS]]. One line of JSON for each kind of object. Needs root and iproute2; without
/// ESP in the kernel, SAs are left out with a note on stderr.
namespace fabric::bench {
namespace {

constexpr int kRounds = 5;
constexpr std::uint32_t kPrefixes = 20;

using Seconds = std::chrono::duration<double>;
using Drivers = std::vector<std::unique_ptr<kernel::Driver>>;

/// Every measurement starts with empty databases.
void enter_new_namespace() {
  FABRIC_ASSERT(::unshare(CLONE_NEWNET) == 0);
}

Drivers open_driver() {
  auto driver = kernel::XfrmDriver::open();
  FABRIC_ASSERT(driver.has_value());
  FABRIC_ASSERT((*driver)->set_policy_hash_thresholds().has_value());
  Drivers out;
  out.push_back(*std::move(driver));
  return out;
}

template <class F>
Seconds timed(F&& work) {
  const auto begin = std::chrono::steady_clock::now();
  std::forward<F>(work)();
  return std::chrono::steady_clock::now() - begin;
}

double median(std::vector<Seconds> times) {
  std::ranges::sort(times);
  return times[times.size() / 2].count();
}

struct Measured {
  std::vector<Seconds> add;
  std::vector<Seconds> remove;
};

/// A file for `ip -batch`, removed at the end.
class Batch {
 public:
  explicit Batch(const std::string& text)
      : path_(fmt::format("{}/fabric-bench-{}", std::filesystem::temp_directory_path().string(), ::getpid())) {
    std::ofstream(path_) << text;
  }

  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  ~Batch() { std::filesystem::remove(path_); }

  void run() const {
    const int status = std::system(fmt::format("ip -batch {}", path_).c_str());
    FABRIC_ASSERT(status == 0);
  }

 private:
  std::string path_;
};

/// What ip is told for the same objects.
struct BatchText {
  std::string add;
  std::string remove;
};

std::string_view direction_name(netstate::Direction direction) {
  switch (direction) {
    case netstate::Direction::in:
      return "in";
    case netstate::Direction::out:
      return "out";
    case netstate::Direction::fwd:
      return "fwd";
  }
  return "";
}

BatchText batch_text(const std::map<netstate::PolicyKey, netstate::XfrmPolicy>& policies) {
  BatchText out;
  for (const auto& [key, policy] : policies) {
    const auto name = fmt::format("dir {} src {} dst {}", direction_name(key.direction), key.src, key.dst);
    out.add += fmt::format("xfrm policy add {} priority {}", name, policy.priority);
    if (const auto* esp = std::get_if<netstate::EspTemplate>(&policy.action)) {
      out.add += fmt::format(" tmpl src {} dst {} proto esp reqid {} mode tunnel\n", esp->saddr, esp->daddr,
                             esp->reqid.value());
    } else {
      out.add += " action block\n";
    }
    out.remove += fmt::format("xfrm policy delete {}\n", name);
  }
  return out;
}

BatchText batch_text(const std::map<netstate::SaKey, netstate::Sa>& sas) {
  BatchText out;
  const std::string key = "0x" + std::string(2 * netstate::kKeyMaterialBytes, '1');
  for (const auto& [id, sa] : sas) {
    out.add += fmt::format(
        "xfrm state add src {} dst {} proto esp spi {:#x} reqid {} mode tunnel replay-window {} flag esn flag "
        "af-unspec aead "
        "rfc4106(gcm(aes)) {} 128\n",
        sa.saddr, id.daddr, id.spi.value(), sa.reqid.value(), sa.replay_window, key);
    out.remove += fmt::format("xfrm state delete dst {} proto esp spi {:#x}\n", id.daddr, id.spi.value());
  }
  return out;
}

void run_checked(const netstate::Script& script, const Drivers& drivers) {
  const auto report = kernel::run_script(script, drivers);
  if (report.ok()) return;
  fmt::print(stderr, "{}\n", report.first_error()->message());
  FABRIC_ASSERT(report.ok());
}

void measure_ours(const netstate::State& state, Measured& into) {
  enter_new_namespace();
  const auto drivers = open_driver();
  // diff() is measured elsewhere; ip gets its commands ready-made, too.
  const auto add = netstate::diff({}, state, netstate::kGatewaySlices);
  const auto remove = netstate::diff(state, {}, netstate::kGatewaySlices);
  into.add.push_back(timed([&] { run_checked(add, drivers); }));
  into.remove.push_back(timed([&] { run_checked(remove, drivers); }));
}

void measure_ip(const BatchText& text, Measured& into) {
  enter_new_namespace();
  open_driver();  // For the same hash thresholds.
  const auto batch = [](const std::string& commands) {
    const Batch file(commands);
    return timed([&] { file.run(); });
  };
  into.add.push_back(batch(text.add));
  into.remove.push_back(batch(text.remove));
}

void print(std::string_view what, std::size_t count, const std::vector<Seconds>& ours, const std::vector<Seconds>& ip) {
  const auto objects = static_cast<double>(count);
  fmt::print("{{\"what\": \"{}\", \"objects\": {}, \"ours_per_s\": {:.0f}, \"ip_per_s\": {:.0f}, \"ratio\": {:.2f}}}\n",
             what, count, objects / median(ours), objects / median(ip), median(ip) / median(ours));
}

void compare(std::string_view what, std::size_t count, const netstate::State& state, const BatchText& text) {
  Measured ours;
  Measured ip;
  for (int i = 0; i < kRounds; ++i) {
    measure_ours(state, ours);
    measure_ip(text, ip);
  }
  print(fmt::format("{} added", what), count, ours.add, ip.add);
  print(fmt::format("{} removed", what), count, ours.remove, ip.remove);
}

netstate::State some_sas(std::uint32_t count) {
  SaWorld world(count / 2);
  world.settle();
  netstate::State out = world.observed();
  // Distinct key material costs nothing more, and limits play no part here.
  const auto key = std::make_shared<const Secret>(netstate::kKeyMaterialBytes);
  for (auto& [id, sa] : out.sas) {
    sa.key = key;
    sa.counters.reset();
  }
  return out;
}

bool kernel_has_esp() {
  enter_new_namespace();
  const auto drivers = open_driver();
  const auto report = kernel::run_script(netstate::diff({}, some_sas(2), netstate::kGatewaySlices), drivers);
  if (!report.ok()) fmt::print(stderr, "no SAs are measured: {}\n", report.first_error()->message());
  return report.ok();
}

int run(std::uint32_t sas, std::uint32_t clusters) {
  netstate::State state;
  state.policies = gateway::plan_policies(policy_inputs(clusters, kPrefixes)).policies;
  compare("policies", state.policies.size(), state, batch_text(state.policies));
  if (!kernel_has_esp()) return 0;
  const netstate::State with_sas = some_sas(sas);
  compare("SAs", with_sas.sas.size(), with_sas, batch_text(with_sas.sas));
  return 0;
}

}  // namespace
}  // namespace fabric::bench

int main(int argc, char** argv) {
  const auto number = [&](int at, std::uint32_t fallback) {
    return argc > at ? static_cast<std::uint32_t>(std::strtoul(argv[at], nullptr, 10)) : fallback;
  };
  return fabric::bench::run(number(1, 2000), number(2, 100));
}
