#include "legacy_table.hpp"

#include <net/if.h>

extern "C" {
#include <libiptc/libip6tc.h>
#include <libiptc/libiptc.h>
}

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <thread>
#include <unistd.h>

#include <sys/file.h>

namespace fabric::kernel {

namespace {

struct V4 {
  using Entry = ipt_entry;
  static constexpr auto init = &iptc_init;
  static constexpr auto free = &iptc_free;
  static constexpr auto is_chain = &iptc_is_chain;
  static constexpr auto first_rule = &iptc_first_rule;
  static constexpr auto next_rule = &iptc_next_rule;
  static constexpr auto get_target = &iptc_get_target;
  static constexpr auto create_chain = &iptc_create_chain;
  static constexpr auto flush_entries = &iptc_flush_entries;
  static constexpr auto delete_chain = &iptc_delete_chain;
  static constexpr auto insert_entry = &iptc_insert_entry;
  static constexpr auto append_entry = &iptc_append_entry;
  static constexpr auto delete_num_entry = &iptc_delete_num_entry;
  static constexpr auto commit = &iptc_commit;
  static constexpr auto strerror = &iptc_strerror;
};

struct V6 {
  using Entry = ip6t_entry;
  static constexpr auto init = &ip6tc_init;
  static constexpr auto free = &ip6tc_free;
  static constexpr auto is_chain = &ip6tc_is_chain;
  static constexpr auto first_rule = &ip6tc_first_rule;
  static constexpr auto next_rule = &ip6tc_next_rule;
  static constexpr auto get_target = &ip6tc_get_target;
  static constexpr auto create_chain = &ip6tc_create_chain;
  static constexpr auto flush_entries = &ip6tc_flush_entries;
  static constexpr auto delete_chain = &ip6tc_delete_chain;
  static constexpr auto insert_entry = &ip6tc_insert_entry;
  static constexpr auto append_entry = &ip6tc_append_entry;
  static constexpr auto delete_num_entry = &ip6tc_delete_num_entry;
  static constexpr auto commit = &ip6tc_commit;
  static constexpr auto strerror = &ip6tc_strerror;
};

// iptables itself, told to wait (-w), tries again once a second; a holder needs milliseconds.
constexpr auto kLockPause = std::chrono::milliseconds(20);
// Another writer that takes no lock changed the table between our read and our commit.
constexpr int kCommitAttempts = 10;

class TableLock {
 public:
  static Result<TableLock> take(const LockOptions& options) {
    const auto& path = options.file;
    const int fd = ::open(path.c_str(), O_CREAT | O_CLOEXEC | O_RDONLY, 0600);
    if (fd < 0) return fail_errno(errno, "opening " + path);
    TableLock lock(fd);
    const auto deadline = std::chrono::steady_clock::now() + options.patience;
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int saved = errno;
      if (saved != EWOULDBLOCK && saved != EINTR) return fail_errno(saved, "locking " + path);
      if (std::chrono::steady_clock::now() > deadline)
        return fail(Errc::unavailable, "{} is held by somebody else", path);
      std::this_thread::sleep_for(kLockPause);
    }
    return lock;
  }

  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;

  TableLock(TableLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  TableLock& operator=(TableLock&&) = delete;

  ~TableLock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  explicit TableLock(int fd) : fd_(fd) {}

  int fd_;
};

const char* hook_chain(FilterHook hook) {
  switch (hook) {
    case FilterHook::nat_postrouting:
    case FilterHook::mangle_postrouting:
      return "POSTROUTING";
    case FilterHook::filter_forward:
    case FilterHook::mangle_forward:
      return "FORWARD";
    case FilterHook::filter_input:
      return "INPUT";
  }
  return "";
}

template <class Api>
class Table {
 public:
  using Handle = std::unique_ptr<xtc_handle, decltype([](xtc_handle* h) { Api::free(h); })>;

  static Result<Table> read(std::string_view name) {
    Handle handle(Api::init(std::string(name).c_str()));
    const int saved = errno;
    if (handle == nullptr) {
      return std::unexpected(Error{saved == ENOENT || saved == ENOPROTOOPT ? Errc::unsupported : errc_of_errno(saved),
                                   fmt::format("legacy table {}: {}", name, Api::strerror(saved)),
                                   {}});
    }
    return Table(std::move(handle));
  }

  bool has(const char* chain) { return Api::is_chain(chain, handle_.get()) != 0; }

  xtc_handle* raw() { return handle_.get(); }

  /// Positions of jumps to this chain within its hook.
  std::vector<unsigned> jumps(FilterHook hook) {
    std::vector<unsigned> found;
    unsigned position = 0;
    for (const auto* e = Api::first_rule(hook_chain(hook), raw()); e != nullptr; e = Api::next_rule(e, raw())) {
      if (Api::get_target(e, raw()) == chain_name(hook)) found.push_back(position);
      ++position;
    }
    return found;
  }

  std::vector<FilterRule> rules(const ChainKey& key, const SetNumbers& numbers) {
    std::vector<FilterRule> found;
    const std::string name(chain_name(key.hook));
    for (const auto* e = Api::first_rule(name.c_str(), raw()); e != nullptr; e = Api::next_rule(e, raw())) {
      const auto* target = Api::get_target(e, raw());
      found.push_back(decode_entry(key, e, target == nullptr ? "" : target, numbers));
    }
    return found;
  }

  /// errno is libiptc's; Api::strerror translates it.
  int remove(FilterHook hook) {
    const std::string name(chain_name(hook));
    if (!has(name.c_str())) return 0;
    auto positions = jumps(hook);
    for (auto at = positions.rbegin(); at != positions.rend(); ++at) {
      if (Api::delete_num_entry(hook_chain(hook), *at, raw()) == 0) return errno;
    }
    if (Api::flush_entries(name.c_str(), raw()) == 0 || Api::delete_chain(name.c_str(), raw()) == 0) return errno;
    return 0;
  }

  int write(const ChainKey& key, std::span<const EntryBytes> entries) {
    const std::string name(chain_name(key.hook));
    if (!has(name.c_str()) && Api::create_chain(name.c_str(), raw()) == 0) return errno;
    if (Api::flush_entries(name.c_str(), raw()) == 0) return errno;
    for (const auto& entry : entries) {
      if (Api::append_entry(name.c_str(), reinterpret_cast<const Api::Entry*>(entry.data()), raw()) == 0) return errno;
    }
    auto positions = jumps(key.hook);
    if (positions == std::vector<unsigned>{0}) return 0;
    for (auto at = positions.rbegin(); at != positions.rend(); ++at) {
      if (Api::delete_num_entry(hook_chain(key.hook), *at, raw()) == 0) return errno;
    }
    const auto jump = encode_jump(key.family, name);
    const auto* entry = reinterpret_cast<const Api::Entry*>(jump.data());
    return Api::insert_entry(hook_chain(key.hook), entry, 0, raw()) == 0 ? errno : 0;
  }

 private:
  explicit Table(Handle handle) : handle_(std::move(handle)) {}

  Handle handle_;
};

template <class Api>
Result<LegacyChains> observe_table(Family family, std::string_view name, const SetNumbers& numbers) {
  FABRIC_TRY(auto table, Table<Api>::read(name));
  LegacyChains chains;
  for (const auto hook : kHooks) {
    const ChainKey key{family, hook};
    if (table_of(hook) != name || !table.has(std::string(chain_name(hook)).c_str())) continue;
    auto rules = table.rules(key, numbers);
    if (rules.empty()) rules.push_back(unrecognised("chain"));
    if (table.jumps(hook) != std::vector<unsigned>{0}) rules.push_back(unrecognised("entered elsewhere"));
    chains[key] = std::move(rules);
  }
  return chains;
}

/// 0 or libiptc's errno.
template <class Api>
int change_once(Table<Api>& table, const LegacyChange& change,
                const std::map<ChainKey, std::vector<EntryBytes>>& entries) {
  for (const auto& [key, rules] : change) {
    const int error = rules ? table.write(key, entries.at(key)) : table.remove(key.hook);
    if (error != 0) return error;
  }
  return Api::commit(table.raw()) != 0 ? 0 : errno;
}

template <class Api>
Result<void> change_table(std::string_view name, const LegacyChange& change, const SetNumbers& numbers,
                          const LockOptions& lock_options) {
  std::map<ChainKey, std::vector<EntryBytes>> entries;
  for (const auto& [key, rules] : change) {
    auto& chain = entries[key];
    for (const auto& rule : rules.value_or(std::vector<FilterRule>())) {
      FABRIC_TRY(auto entry, encode_entry(key, rule, numbers));
      chain.push_back(std::move(entry));
    }
  }
  FABRIC_TRY(const auto lock, TableLock::take(lock_options));
  int error = EAGAIN;
  for (int attempt = 0; error == EAGAIN && attempt < kCommitAttempts; ++attempt) {
    FABRIC_TRY(auto table, Table<Api>::read(name));
    error = change_once(table, change, entries);
  }
  if (error == 0) return {};
  return fail(errc_of_errno(error), "legacy table {}: {}", name, Api::strerror(error));
}

}  // namespace

std::string_view table_of(FilterHook hook) {
  switch (hook) {
    case FilterHook::nat_postrouting:
      return "nat";
    case FilterHook::filter_forward:
    case FilterHook::filter_input:
      return "filter";
    case FilterHook::mangle_forward:
    case FilterHook::mangle_postrouting:
      return "mangle";
  }
  return "";
}

bool legacy_table_exists(Family family, std::string_view table) {
  // "thread-self", as a thread may be in another namespace than the process.
  std::ifstream names(family == Family::ipv4 ? "/proc/thread-self/net/ip_tables_names"
                                             : "/proc/thread-self/net/ip6_tables_names");
  for (std::string name; std::getline(names, name);) {
    if (name == table) return true;
  }
  return false;
}

bool legacy_chain_exists(Family family, std::string_view table, const std::string& chain) {
  if (!legacy_table_exists(family, table)) return false;
  if (family == Family::ipv4) {
    auto read = Table<V4>::read(table);
    return read && read->has(chain.c_str());
  }
  auto read = Table<V6>::read(table);
  return read && read->has(chain.c_str());
}

Result<LegacyChains> observe_legacy_table(Family family, std::string_view table, const SetNumbers& numbers) {
  return family == Family::ipv4 ? observe_table<V4>(family, table, numbers) : observe_table<V6>(family, table, numbers);
}

Result<void> change_legacy_table(Family family, std::string_view table, const LegacyChange& change,
                                 const SetNumbers& numbers, const LockOptions& lock_options) {
  return family == Family::ipv4 ? change_table<V4>(table, change, numbers, lock_options)
                                : change_table<V6>(table, change, numbers, lock_options);
}

}  // namespace fabric::kernel
