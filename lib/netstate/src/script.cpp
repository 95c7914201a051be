#include <fabric/netstate/script.hpp>

#include <fmt/format.h>

#include <string_view>

namespace fabric::netstate {

namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

std::string_view to_string(Verb verb) {
  switch (verb) {
    case Verb::add:
      return "add";
    case Verb::replace:
      return "replace";
    case Verb::remove:
      return "remove";
  }
  return "?";
}

std::string_view to_string(Direction direction) {
  switch (direction) {
    case Direction::in:
      return "in";
    case Direction::out:
      return "out";
    case Direction::fwd:
      return "fwd";
  }
  return "?";
}

std::string_view to_string(FilterHook hook) {
  switch (hook) {
    case FilterHook::nat_postrouting:
      return "nat postrouting";
    case FilterHook::filter_forward:
      return "filter forward";
    case FilterHook::filter_input:
      return "filter input";
    case FilterHook::mangle_forward:
      return "mangle forward";
    case FilterHook::mangle_postrouting:
      return "mangle postrouting";
  }
  return "?";
}

std::string describe_policy(const PolicyObject& policy) {
  const auto* esp = std::get_if<EspTemplate>(&policy.policy.action);
  const auto action = esp != nullptr ? fmt::format("reqid {:#010x}", esp->reqid.value()) : std::string("block");
  return fmt::format("policy {} {} -> {} {}", to_string(policy.key.direction), policy.key.src, policy.key.dst, action);
}

}  // namespace

Slice slice_of(const Object& object) {
  return std::visit(Overloaded{[](const SaObject&) { return Slice::sas; },           //
                               [](const PolicyObject&) { return Slice::policies; },  //
                               [](const LinkObject&) { return Slice::links; },       //
                               [](const FdbEntry&) { return Slice::fdb; },           //
                               [](const Neighbour&) { return Slice::neighbours; },   //
                               [](const RouteObject&) { return Slice::routes; },     //
                               [](const IpSetObject&) { return Slice::ipsets; },     //
                               [](const ChainObject&) { return Slice::chains; },     //
                               [](const SysctlObject&) { return Slice::sysctls; }},
                    object);
}

std::string describe(const Step& step) {
  const auto object = std::visit(
      Overloaded{
          [](const SaObject& o) {
            return fmt::format("SA {} -> {} spi {:#010x} reqid {:#010x}", o.sa.saddr, o.key.daddr, o.key.spi.value(),
                               o.sa.reqid.value());
          },
          [](const PolicyObject& o) { return describe_policy(o); },
          [](const LinkObject& o) { return fmt::format("link {} vni {} mtu {}", o.name, o.link.vni, o.link.mtu); },
          [](const FdbEntry& o) { return fmt::format("FDB entry {} -> {} on {}", o.mac, o.remote, o.link); },
          [](const Neighbour& o) { return fmt::format("neighbour {} at {} on {}", o.address, o.mac, o.link); },
          [](const RouteObject& o) { return fmt::format("route {} on {}", o.key.dst, o.route.link); },
          [](const IpSetObject& o) {
            return fmt::format("set {} of {} {} prefixes", o.name, o.set.entries.size(), to_string(o.set.family));
          },
          [](const ChainObject& o) {
            return fmt::format("chain {} {} of {} rules", to_string(o.key.family), to_string(o.key.hook),
                               o.rules.size());
          },
          [](const SysctlObject& o) { return fmt::format("sysctl {} = {}", o.name, o.value); }},
      step.object);
  return fmt::format("{} {}", to_string(step.verb), object);
}

}  // namespace fabric::netstate
