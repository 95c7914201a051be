#include <fabric/ctl/commands.hpp>
#include <fabric/ctl/static_key.hpp>
#include <fabric/kernel/xfrm.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <ostream>
#include <unistd.h>

#include <sys/stat.h>

namespace fabric::ctl {

namespace {

/// Longer than any key in hex, so that a wrong file is refused and not read.
constexpr std::size_t kKeyFileBytes = 256;

constexpr std::string_view kWhy =
    "  - one key for both directions and for ever: whoever learns it reads everything, past and future (no forward\n"
    "    secrecy), and nothing ever replaces it (no rekeying)\n"
    "  - AES-GCM breaks when a nonce repeats under a key. Each time an end is installed again with this key (reboot,\n"
    "    repair, down and up) it may. RFC 4106 therefore demands automated keying\n"
    "  - sequence numbers of 32 bits: after 4294967295 packets the tunnel stands still\n"
    "Instead, let Fabric join the clusters (kubectl apply -f join.yaml): its gateways draw new keys by themselves.\n";

constexpr std::string_view kTodo =
    "Left for you to do on this node, and likewise at the far end:\n"
    "  - a route to {remote_prefix} (the default route will do), and ESP (IP protocol 50) from {remote} let through\n"
    "  - sysctl -w net.ipv4.ip_forward=1 (net.ipv6.conf.all.forwarding=1), and a firewall that forwards between\n"
    "    {local_prefix} and {remote_prefix}\n"
    "  - no masquerading from {local_prefix} to {remote_prefix}: it would hide packets from the policies\n"
    "  - an MTU of the pods that leaves 60 bytes for ESP (80 over IPv6)\n"
    "Should the far end be made anew, take this end down, too, and come up with a NEW key and another SPI: its\n"
    "sequence numbers start again, and are dropped here as replays.\n";

Result<Secret> read_text(int fd, const std::filesystem::path& file) {
  struct ::stat about{};
  if (::fstat(fd, &about) != 0) {
    const int error = errno;
    return fail_errno(error, "looking at it");
  }
  if (!S_ISREG(about.st_mode)) return fail(Errc::invalid, "not a regular file");
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(Errc::forbidden, "mode {:04o} lets others at the key: chmod 600 {}, and better use a new key",
                about.st_mode & 07777U, file.string());
  }
  Secret text(kKeyFileBytes);
  const ssize_t size = ::read(fd, text.writable().data(), text.size());
  if (size < 0) {
    const int error = errno;
    return fail_errno(error, "reading it");
  }
  return Secret(text.reveal().first(static_cast<std::size_t>(size)));
}

Result<netstate::KeyMaterial> read_key(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int error = errno;
    return fail_errno(error, "opening it");
  }
  const auto text = read_text(fd, file);
  ::close(fd);
  if (!text) return std::unexpected(text.error());
  FABRIC_TRY(Secret key, parse_static_key(text->reveal_text()));
  return std::make_shared<const Secret>(std::move(key));
}

Result<Exit> up(const StaticTunnelCommand& command, std::ostream& out, std::ostream& err) {
  const kernel::StaticTunnel& tunnel = command.tunnel;
  if (!command.acknowledged) {
    err << "refused: static keys are unsafe:\n"
        << kWhy << "If this is a demonstration with worthless traffic: --i-know-that-static-keys-are-unsafe\n";
    return Exit::not_done;
  }
  err << "*** WARNING *** STATIC KEYS ARE UNSAFE; FOR DEMONSTRATIONS OF INTEROPERABILITY ONLY:\n" << kWhy;
  FABRIC_TRY(const auto key, read_key(command.key_file).with(fmt::format("--key-file {}", command.key_file.string())));
  // Says what is missing before anything is changed.
  FABRIC_TRY(const auto driver, kernel::XfrmDriver::open());
  FABRIC_CHECK(driver->warm_up(netstate::Aead::aes_gcm_256).with("trying ESP, which needs root on the gateway node"));
  const auto added = kernel::add_static_tunnel(tunnel, key);
  if (!added && added.error().code == Errc::already_exists) {
    err << "refused: " << added.error().message() << '\n';
    return Exit::not_done;
  }
  if (!added) return std::unexpected(added.error());
  out << fmt::format("static tunnel {} - {} is up: SPI {}, reqid {}, {} - {}\n", tunnel.local, tunnel.remote,
                     tunnel.spi, tunnel.reqid, tunnel.local_prefix, tunnel.remote_prefix)
      << fmt::format(fmt::runtime(kTodo), fmt::arg("remote", tunnel.remote),
                     fmt::arg("local_prefix", tunnel.local_prefix), fmt::arg("remote_prefix", tunnel.remote_prefix));
  return Exit::done;
}

}  // namespace

Result<Exit> static_tunnel(const StaticTunnelCommand& command, std::ostream& out, std::ostream& err) {
  if (command.up) return up(command, out, err);
  FABRIC_TRY(const int removed, kernel::remove_static_tunnel(command.tunnel));
  if (removed == 0) {
    err << "nothing to take down: no object of a static tunnel has these addresses, prefixes, SPI and reqid\n";
    return Exit::not_done;
  }
  out << fmt::format(
      "static tunnel {} - {} is down: {} objects removed. Packets to {} are no longer encrypted, and\n"
      "leave in clear where a route leads. Do not use the key again.\n",
      command.tunnel.local, command.tunnel.remote, removed, command.tunnel.remote_prefix);
  return Exit::done;
}

}  // namespace fabric::ctl
