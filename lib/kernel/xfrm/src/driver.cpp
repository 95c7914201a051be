#include <fabric/kernel/xfrm.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <sys/random.h>

#include "codec.hpp"
#include "netlink.hpp"

namespace fabric::kernel {

namespace {

using netstate::Slice;
using netstate::Step;
using netstate::Verb;
using xfrm::Ack;
using xfrm::Batch;

/// Policies whose remote prefix is at least this long are found by hash; shorter ones the kernel keeps in a list in any
/// case (INEXACT_PREFIXLEN_IPV4 and _IPV6 in net/xfrm/xfrm_policy.c). A cluster has a pod prefix of /16 or longer, or
/// of /48 or longer, of its own, so that the leading bits tell clusters apart: a longer threshold would leave the usual
/// prefixes in the tree, where a change costs O(N). The local side is not hashed: all policies share the few local
/// prefixes, and block policies have none.
constexpr std::uint8_t kRemoteBits4 = 16;
constexpr std::uint8_t kRemoteBits6 = 48;
constexpr std::uint8_t kLocalBits = 0;

/// The SA of warm_up(). IPv4: what is slow to load are the ciphers, which both families share.
const auto kWarmUpAddress = net::IpAddress::v4(127, 0, 0, 1);
const netstate::Spi kWarmUpSpi(0x46ab0001);
constexpr std::uint64_t kWarmUpSeconds = 5;

Result<void> encode(Batch& batch, const Step& step) {
  if (const auto* sa = std::get_if<netstate::SaObject>(&step.object)) {
    if (step.verb == Verb::replace) return fail(Errc::invalid, "an SA is never replaced");
    if (step.verb == Verb::add) return xfrm::encode_add(batch, *sa);
    xfrm::encode_remove(batch, sa->key);
    return {};
  }
  if (const auto* policy = std::get_if<netstate::PolicyObject>(&step.object)) {
    if (step.verb == Verb::remove) return xfrm::encode_remove(batch, policy->key);
    return xfrm::encode_put(batch, *policy, step.verb == Verb::replace);
  }
  return fail(Errc::unsupported, "the xfrm driver knows SAs and policies only");
}

/// The modules without which a kernel refuses the SA. The kernel loads them by itself, where it has them and may.
std::string_view modules_of(netstate::Aead aead) {
  return aead == netstate::Aead::aes_gcm_256 ? "esp4 esp6 gcm" : "esp4 esp6 chacha20poly1305";
}

Result<void> judge_sa_add(const Ack& ack, const netstate::SaObject& object) {
  switch (ack.error) {
    case 0:
      return {};
    case EEXIST:
      return xfrm::fail_ack(ack, "another SA has this destination address and SPI");
    case EAFNOSUPPORT:
      return xfrm::fail_ack(
          ack, fmt::format("no {} in this kernel; enable it on the node", net::to_string(object.key.daddr.family())));
    // The last two mean a missing cipher here, which is looked up before ESP itself is (xfrm_add_sa()).
    case EPROTONOSUPPORT:
    case ENOSYS:
    case ENOENT: {
      auto error =
          xfrm::fail_ack(ack, fmt::format("no ESP with this cipher in the kernel; on the node run: modprobe -a {}",
                                          modules_of(object.sa.aead)));
      error.error().code = Errc::unsupported;
      return error;
    }
    default:
      return xfrm::fail_ack(ack, {});
  }
}

/// What a verdict means for the step; EEXIST of a policy is settled by the caller.
Result<void> judge(const Ack& ack, const Step& step) {
  const bool absent = ack.error == ESRCH || ack.error == ENOENT;
  if (ack.error == 0 || (step.verb == Verb::remove && absent)) return {};
  if (ack.error == EPERM) return xfrm::fail_ack(ack, "the program needs CAP_NET_ADMIN");
  const auto* sa = std::get_if<netstate::SaObject>(&step.object);
  if (sa != nullptr && step.verb == Verb::add) return judge_sa_add(ack, *sa);
  return xfrm::fail_ack(ack, {});
}

bool is_existing_policy(const Result<void>& result, const Step& step) {
  return !result && result.error().code == Errc::already_exists && step.verb == Verb::add &&
         std::holds_alternative<netstate::PolicyObject>(step.object);
}

}  // namespace

struct XfrmDriver::Impl {
  explicit Impl(xfrm::Socket opened) : socket(std::move(opened)) {}

  Result<void> dump(std::uint16_t type, const xfrm::Socket::OnMessage& on_message,
                    const std::function<void()>& restart);
  void chunk(std::span<const Step> steps, std::span<Result<void>> results);
  Result<void> replace_if_ours(const netstate::PolicyObject& object);
  Result<Ack> execute_one(const xfrm::Socket::OnMessage& on_message = {});

  xfrm::Socket socket;
  Batch batch;
};

Result<void> XfrmDriver::Impl::dump(std::uint16_t type, const xfrm::Socket::OnMessage& on_message,
                                    const std::function<void()>& restart) {
  batch.clear();
  batch.begin(type, NLM_F_REQUEST | NLM_F_DUMP);
  // Without the fixed part: in a dump request attributes follow the header (xfrm_dump_sa()).
  batch.end();
  return socket.dump(batch, on_message, restart);
}

/// Sends at most Batch::kMaxMessages steps at once.
void XfrmDriver::Impl::chunk(std::span<const Step> steps, std::span<Result<void>> results) {
  batch.clear();
  std::vector<std::size_t> sent;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    results[i] = encode(batch, steps[i]);
    if (results[i]) sent.push_back(i);
  }
  if (sent.empty()) return;
  const auto acks = socket.execute(batch);
  batch.clear();
  for (std::size_t i = 0; i < sent.size(); ++i) {
    auto& result = results[sent[i]];
    result = acks ? judge((*acks)[i], steps[sent[i]]) : Result<void>(std::unexpected(acks.error()));
  }
}

Result<Ack> XfrmDriver::Impl::execute_one(const xfrm::Socket::OnMessage& on_message) {
  auto acks = socket.execute(batch, on_message);
  batch.clear();
  if (!acks) return std::unexpected(std::move(acks).error());
  return std::move(acks->front());
}

/// A policy with the selector exists: ours is replaced, another program's is left alone.
Result<void> XfrmDriver::Impl::replace_if_ours(const netstate::PolicyObject& object) {
  bool ours = false;
  FABRIC_CHECK(xfrm::encode_get(batch, object.key));
  FABRIC_TRY(const auto found, execute_one([&](const xfrm::Message& message) {
               ours = ours || xfrm::parse_policy(message.payload).has_value();
             }));
  if (found.error == 0 && !ours) {
    return fail(Errc::already_exists,
                "another program has an IPsec policy with this selector; remove it (ip xfrm policy) or that program");
  }
  FABRIC_CHECK(xfrm::encode_put(batch, object, true));
  FABRIC_TRY(const auto ack, execute_one());
  if (ack.error != 0) return xfrm::fail_ack(ack, {});
  return {};
}

XfrmDriver::XfrmDriver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

XfrmDriver::~XfrmDriver() = default;

Result<std::unique_ptr<XfrmDriver>> XfrmDriver::open() {
  FABRIC_TRY(auto socket, xfrm::Socket::open());
  return std::unique_ptr<XfrmDriver>(new XfrmDriver(std::make_unique<Impl>(std::move(socket))));
}

netstate::Slices XfrmDriver::slices() const {
  return {Slice::sas, Slice::policies};
}

Result<void> XfrmDriver::observe(netstate::Slices wanted, netstate::State& into) {
  if (wanted.has(Slice::sas)) {
    const auto on_sa = [&](const xfrm::Message& message) {
      if (auto sa = xfrm::parse_sa(message.payload)) into.sas.insert_or_assign(sa->key, std::move(sa->sa));
    };
    FABRIC_CHECK(impl_->dump(XFRM_MSG_GETSA, on_sa, [&] { into.sas.clear(); }).with("reading SAs"));
  }
  if (wanted.has(Slice::policies)) {
    const auto on_policy = [&](const xfrm::Message& message) {
      if (const auto policy = xfrm::parse_policy(message.payload)) {
        into.policies.insert_or_assign(policy->key, policy->policy);
      }
    };
    FABRIC_CHECK(
        impl_->dump(XFRM_MSG_GETPOLICY, on_policy, [&] { into.policies.clear(); }).with("reading IPsec policies"));
  }
  return {};
}

std::vector<Result<void>> XfrmDriver::apply(std::span<const Step> steps) {
  std::vector<Result<void>> results(steps.size());
  for (std::size_t begin = 0; begin < steps.size(); begin += Batch::kMaxMessages) {
    const auto count = std::min(Batch::kMaxMessages, steps.size() - begin);
    impl_->chunk(steps.subspan(begin, count), std::span(results).subspan(begin, count));
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!is_existing_policy(results[i], steps[i])) continue;
    results[i] = impl_->replace_if_ours(std::get<netstate::PolicyObject>(steps[i].object));
  }
  return results;
}

Result<void> XfrmDriver::warm_up(netstate::Aead aead) {
  netstate::SaObject object{{kWarmUpAddress, kWarmUpSpi}, {}};
  object.sa.saddr = kWarmUpAddress;
  object.sa.aead = aead;
  object.sa.hard_seconds = kWarmUpSeconds;
  // Nothing is ever sent with it, and yet no SA has a key that somebody could know or that another had.
  const auto key = std::make_shared<Secret>(netstate::kKeyMaterialBytes);
  if (::getrandom(key->writable().data(), key->size(), 0) < 0) {
    const int error = errno;
    return fail_errno(error, "drawing a key");
  }
  object.sa.key = key;
  impl_->batch.clear();
  FABRIC_CHECK(xfrm::encode_add(impl_->batch, object));
  xfrm::encode_remove(impl_->batch, object.key);
  auto acks = impl_->socket.execute(impl_->batch);
  impl_->batch.clear();
  if (!acks) return std::unexpected(std::move(acks).error());
  return judge_sa_add(acks->front(), object);
}

Result<void> XfrmDriver::set_policy_hash_thresholds() {
  impl_->batch.clear();
  impl_->batch.begin(XFRM_MSG_NEWSPDINFO, NLM_F_REQUEST | NLM_F_ACK);
  impl_->batch.body(std::uint32_t{0});
  impl_->batch.attribute(XFRMA_SPD_IPV4_HTHRESH, xfrmu_spdhthresh{.lbits = kLocalBits, .rbits = kRemoteBits4});
  impl_->batch.attribute(XFRMA_SPD_IPV6_HTHRESH, xfrmu_spdhthresh{.lbits = kLocalBits, .rbits = kRemoteBits6});
  impl_->batch.end();
  FABRIC_TRY(const auto ack, impl_->execute_one());
  if (ack.error != 0) return xfrm::fail_ack(ack, "setting the hash thresholds of IPsec policies");
  return {};
}

}  // namespace fabric::kernel
