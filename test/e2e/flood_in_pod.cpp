// One end of a flood: sends numbered datagrams at fixed rates and accounts for every one that arrives.
//
// Run in the network namespace of a pod: flood_in_pod PORT SIZE {FLOW ADDRESS RATE}...
// stdin: "go" begins the sending, "stop" ends it, the end of stdin ends the program. stdout: a JSON line twice a second
// and at the end, {"sent": {flow: packets}, "refused": sends that the kernel refused, "overflow": packets that this
// program was too slow to take, "silence": longest time without an arrival in s, "received": {flow: {"next", "unique",
// "twice", "late", "missing", "outage": of the longest hole in s, "holes": [[first, packets, seconds]]}}}.
//
// It is no Python, and it sends and takes many packets with one system call, as its guest has one processor, in which a
// system call costs more than a packet. Times are those of its ticks.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <poll.h>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

#include <arpa/inet.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kMagic = 0xFAB21C00;
constexpr std::chrono::milliseconds kTick{10};
constexpr std::chrono::milliseconds kReport{500};
constexpr std::uint64_t kBurst = 100;  // packets of one flow in one tick after a pause of the whole guest
constexpr std::size_t kBatch = 128;    // packets taken with one system call
constexpr std::size_t kHolesKept = 1000;
constexpr std::size_t kHolesShown = 5;
// A guest may be without a processor for seconds, and a small packet takes several KiB of the buffer.
constexpr int kBuffer = 256 << 20;

struct Header {
  std::uint32_t magic;
  std::uint32_t flow;
  std::uint64_t number;
  std::int64_t clock;  // the sender's, in ns
};

struct Outgoing {
  std::uint32_t flow = 0;
  sockaddr_in6 to{};
  double rate = 0;
  std::uint64_t sent = 0;
};

struct Hole {
  std::uint64_t first;
  std::uint64_t packets;
  double seconds;  // by the sender's clock, between the packets around it
};

// Numbers seen of one flow. A hole is closed again by packets that come late.
struct Incoming {
  std::uint64_t next = 0, unique = 0, twice = 0, late = 0;
  std::int64_t clock = 0;
  std::set<std::uint64_t> missing;
  std::vector<Hole> holes;

  void take(const Header& h) {
    if (h.number < next) {
      if (missing.erase(h.number) == 0) {
        ++twice;
        return;
      }
      ++late;
    } else {
      for (std::uint64_t n = next; n < h.number; ++n)
        missing.insert(missing.end(), n);
      if (h.number > next && holes.size() < kHolesKept)
        holes.push_back({next, h.number - next, clock == 0 ? 0 : static_cast<double>(h.clock - clock) / 1e9});
      next = h.number + 1;
      clock = h.clock;
    }
    ++unique;
  }

  void print() const {
    double outage = 0;
    std::string shown;
    std::size_t count = 0;
    for (const Hole& hole : holes) {
      const auto still = missing.lower_bound(hole.first);
      if (still == missing.end() || *still >= hole.first + hole.packets) continue;
      outage = std::max(outage, hole.seconds);
      if (++count <= kHolesShown) {
        shown += (shown.empty() ? "[" : ", [") + std::to_string(hole.first) + ", " + std::to_string(hole.packets) +
                 ", " + std::to_string(hole.seconds) + "]";
      }
    }
    std::printf(
        R"({"next": %lu, "unique": %lu, "twice": %lu, "late": %lu, "missing": %zu, "outage": %.6f, "holes": [%s]})",
        next, unique, twice, late, missing.size(), outage, shown.c_str());
  }
};

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

int open_box(std::uint16_t port) {
  const int box = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  const int off = 0;
  sockaddr_in6 own{};
  own.sin6_family = AF_INET6;
  own.sin6_port = htons(port);
  if (box < 0 || setsockopt(box, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0 ||
      setsockopt(box, SOL_SOCKET, SO_RCVBUFFORCE, &kBuffer, sizeof kBuffer) != 0 ||
      setsockopt(box, SOL_SOCKET, SO_SNDBUFFORCE, &kBuffer, sizeof kBuffer) != 0 ||
      bind(box, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
    die("socket");
  return box;
}

std::uint32_t overflow(int box) {
  std::array<std::uint32_t, SK_MEMINFO_VARS> memory{};
  socklen_t size = sizeof memory;
  if (getsockopt(box, SOL_SOCKET, SO_MEMINFO, memory.data(), &size) != 0) die("SO_MEMINFO");
  return memory[SK_MEMINFO_DROPS];
}

Outgoing outgoing(char** words, std::uint16_t port) {
  Outgoing result{.flow = static_cast<std::uint32_t>(std::atoi(words[0])), .rate = std::atof(words[2])};
  const std::string address = words[1];
  const std::string mapped = address.find(':') == std::string::npos ? "::ffff:" + address : address;
  result.to.sin6_family = AF_INET6;
  result.to.sin6_port = htons(port);
  if (inet_pton(AF_INET6, mapped.c_str(), &result.to.sin6_addr) != 1) die(words[1]);
  return result;
}

class Flood {
 public:
  Flood(std::uint16_t port, std::size_t size, std::vector<Outgoing> flows)
      : box_(open_box(port)), padding_(size - std::min(size, sizeof(Header))), flows_(std::move(flows)) {}

  void run() {
    auto report_at = Clock::now();
    auto tick = report_at;
    do {
      const auto now = Clock::now();
      receive(now);
      if (sending_) send(now);
      if (now >= report_at) {
        report_at = now + kReport;
        report();
      }
      tick = std::max(tick + kTick, now);
    } while (obey(tick));
    receive(Clock::now());
    report();
  }

 private:
  /// Waits for a command until `tick`. False at the end of the commands.
  bool obey(Clock::time_point tick) {
    pollfd commands{0, POLLIN, 0};
    const auto pause = std::chrono::ceil<std::chrono::milliseconds>(tick - Clock::now()).count();
    if (poll(&commands, 1, static_cast<int>(std::max<std::int64_t>(0, pause))) <= 0) return true;
    std::array<char, 64> text{};
    const auto size = read(0, text.data(), text.size());
    if (size <= 0) return false;
    sending_ = std::string(text.data(), static_cast<std::size_t>(size)).find("go") != std::string::npos;
    if (sending_) since_ = Clock::now();
    return true;
  }

  void send(Clock::time_point now) {
    std::vector<Header> headers;
    std::vector<sockaddr_in6*> targets;
    for (Outgoing& out : flows_) {
      const auto due = static_cast<std::uint64_t>(std::chrono::duration<double>(now - since_).count() * out.rate);
      for (std::uint64_t left = due > out.sent ? std::min(kBurst, due - out.sent) : 0; left > 0; --left) {
        headers.push_back({kMagic, out.flow, out.sent++, now.time_since_epoch().count()});
        targets.push_back(&out.to);
      }
    }
    std::vector<std::array<iovec, 2>> parts(headers.size());
    std::vector<mmsghdr> messages(headers.size());
    for (std::size_t i = 0; i < headers.size(); ++i) {
      parts[i] = {{{&headers[i], sizeof headers[i]}, {padding_.data(), padding_.size()}}};
      messages[i].msg_hdr = {.msg_name = targets[i],
                             .msg_namelen = sizeof(sockaddr_in6),
                             .msg_iov = parts[i].data(),
                             .msg_iovlen = parts[i].size(),
                             .msg_control = nullptr,
                             .msg_controllen = 0,
                             .msg_flags = 0};
    }
    for (std::size_t done = 0; done < messages.size();) {
      const int sent = sendmmsg(box_, &messages[done], static_cast<unsigned>(messages.size() - done), 0);
      if (sent <= 0) ++refused_;  // It is the first of the rest.
      done += static_cast<std::size_t>(std::max(sent, 1));
    }
  }

  void receive(Clock::time_point now) {
    // The size of a packet comes back whole; only its header is copied.
    std::array<Header, kBatch> headers{};
    std::array<iovec, kBatch> parts{};
    std::array<mmsghdr, kBatch> messages{};
    for (std::size_t i = 0; i < kBatch; ++i) {
      parts[i] = {&headers[i], sizeof headers[i]};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    bool any = false;
    for (int taken = kBatch; taken == static_cast<int>(kBatch);) {
      taken = recvmmsg(box_, messages.data(), kBatch, MSG_TRUNC | MSG_DONTWAIT, nullptr);
      for (int i = 0; i < taken; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (messages[at].msg_len < sizeof(Header) || headers[at].magic != kMagic) continue;
        incoming_[headers[at].flow].take(headers[at]);
        any = true;
      }
    }
    if (!any) return;
    if (sending_ && last_ != Clock::time_point{})
      silence_ = std::max(silence_, std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }

  void report() const {
    std::printf("{\"sent\": {");
    const char* comma = "";
    for (const Outgoing& out : flows_) {
      std::printf("%s\"%u\": %lu", comma, out.flow, out.sent);
      comma = ", ";
    }
    std::printf("}, \"refused\": %lu, \"overflow\": %u, \"silence\": %.6f, \"received\": {", refused_, overflow(box_),
                silence_);
    comma = "";
    for (const auto& [flow, in] : incoming_) {
      std::printf("%s\"%u\": ", comma, flow);
      in.print();
      comma = ", ";
    }
    std::printf("}}\n");
    std::fflush(stdout);
  }

  int box_;
  std::vector<char> padding_;
  std::vector<Outgoing> flows_;
  std::map<std::uint32_t, Incoming> incoming_;
  bool sending_ = false;
  Clock::time_point since_{}, last_{};
  std::uint64_t refused_ = 0;
  double silence_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc % 3 != 0) {
    std::fprintf(stderr, "usage: flood_in_pod PORT SIZE {FLOW ADDRESS RATE}...\n");
    return 2;
  }
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  std::vector<Outgoing> flows;
  for (int i = 3; i < argc; i += 3)
    flows.push_back(outgoing(argv + i, port));
  Flood(port, static_cast<std::size_t>(std::atoi(argv[2])), std::move(flows)).run();
  return 0;
}
