#pragma once

#include <fabric/base/error.hpp>
#include <fabric/netstate/state.hpp>

/// A tunnel with one key for ever, towards a far end that somebody made by hand with `ip xfrm`. For demonstrations of
/// interoperability, by a person at a node; agents never install one, and their drivers take it for another program's.
namespace fabric::kernel {

/// One SPI serves both directions.
struct StaticTunnel {
  netstate::IpAddress local;   ///< Of this node, as its own packets carry it: in front of a NAT, the inner address.
  netstate::IpAddress remote;  ///< As packets to and from the far end carry it here.
  netstate::Cidr local_prefix;
  netstate::Cidr remote_prefix;
  netstate::Spi spi;
  netstate::Reqid reqid;  ///< Binds policies to SAs on this node only; outside of the agents' range.
};

/// Whether the values fit together; Errc::invalid names the one that does not. Pure.
Result<void> check_static_tunnel(const StaticTunnel& tunnel);

/// Installs in, fwd and out policies and the two SAs, without ESN, in the network namespace of the calling thread; the
/// key is 20 or 36 bytes (AES-128 or AES-256, and 4 of salt). What the agents install goes before it. Refuses with
/// already_exists, changing nothing, when an SA has this SPI or reqid; a failure later is undone. Needs CAP_NET_ADMIN.
Result<void> add_static_tunnel(const StaticTunnel& tunnel, const netstate::KeyMaterial& key);

/// Removes exactly what add_static_tunnel() installed, SAs first, and returns how many objects there were, at most 5.
/// Refuses with conflict, removing nothing, when another program owns one of them.
Result<int> remove_static_tunnel(const StaticTunnel& tunnel);

}  // namespace fabric::kernel
