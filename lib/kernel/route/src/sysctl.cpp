#include <fabric/base/unique_resource.hpp>
#include <fabric/kernel/sysctl.hpp>

#include <array>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <unistd.h>
#include <utility>

#include <sys/stat.h>

namespace fabric::kernel {

namespace {

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}

  File(const File&) = delete;
  File& operator=(const File&) = delete;

  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }

  explicit operator bool() const { return fd_ >= 0; }

  int fd() const { return fd_; }

 private:
  int fd_;
};

Result<std::string> read_file(const std::string& path) {
  const File file(path, O_RDONLY);
  if (!file) return fail_errno(errno, fmt::format("opening {}", path));
  // Settings are numbers or short lists of them.
  std::array<char, 4096> buffer{};
  const auto size = ::read(file.fd(), buffer.data(), buffer.size());
  if (size < 0) return fail_errno(errno, fmt::format("reading {}", path));
  std::string text(buffer.data(), static_cast<std::size_t>(size));
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

Result<void> write_file(const std::string& path, std::string_view text, int flags) {
  const File file(path, O_WRONLY | flags);
  if (!file) return fail_errno(errno, fmt::format("opening {}", path));
  // A setting takes a value in one write or not at all.
  const auto size = ::write(file.fd(), text.data(), text.size());
  if (size < 0) return fail_errno(errno, fmt::format("writing '{}' to {}", text, path));
  return {};
}

// Parts of the path become one file name; '%' keeps the mapping reversible, as interface names may contain anything but
// '/' and white space.
std::string file_name(std::string_view key) {
  std::string name;
  for (const char c : key) {
    if (c == '/')
      name += "%2F";
    else if (c == '%')
      name += "%25";
    else
      name += c;
  }
  return name;
}

std::optional<std::string> key_of(std::string_view name) {
  std::string key;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%') {
      key += name[i];
      continue;
    }
    const auto code = name.substr(i, 3);
    if (code != "%2F" && code != "%25") return std::nullopt;
    key += code == "%2F" ? '/' : '%';
    i += 2;
  }
  return key;
}

// The part after a dot is never a directory of ours: a key could otherwise lead out of /proc/sys.
Result<void> check_key(std::string_view key) {
  const std::filesystem::path path(key);
  const bool harmless =
      key.starts_with("net/") && path.native() == path.lexically_normal().native() && path.has_filename();
  if (!harmless) return fail(Errc::invalid, "'{}' is not the name of a setting below net/", key);
  return {};
}

// Made whole under another name, so that a crash never leaves an empty value behind; link() does not replace.
Result<void> keep(const SysctlOptions& options, std::string_view key, std::string_view value) {
  std::error_code error;
  std::filesystem::create_directories(options.state_directory, error);
  if (error) return std::unexpected(Error{Errc::internal, "creating " + options.state_directory, error});
  const auto path = options.state_directory + "/" + file_name(key);
  const auto temporary = options.state_directory + "/.new";
  FABRIC_CHECK(write_file(temporary, value, O_CREAT | O_TRUNC));
  const int linked = ::link(temporary.c_str(), path.c_str());
  const int saved = errno;
  ::unlink(temporary.c_str());
  if (linked != 0 && saved != EEXIST) return fail_errno(saved, fmt::format("keeping the old value of {}", key));
  return {};
}

Result<std::vector<std::string>> kept_keys(const SysctlOptions& options) {
  const UniqueResource<&closedir> directory(opendir(options.state_directory.c_str()));
  if (directory == nullptr && errno == ENOENT) return std::vector<std::string>();
  if (directory == nullptr) return fail_errno(errno, "opening " + options.state_directory);
  std::vector<std::string> keys;
  while (const auto* entry = readdir(directory.get())) {
    const std::string_view name(entry->d_name);
    if (name.starts_with('.')) continue;
    if (auto key = key_of(name)) keys.push_back(*std::move(key));
  }
  return keys;
}

}  // namespace

Result<std::string> read_sysctl(const SysctlOptions& options, std::string_view key) {
  FABRIC_CHECK(check_key(key));
  return read_file(fmt::format("{}/{}", options.root, key));
}

Result<std::unique_ptr<SysctlDriver>> SysctlDriver::open(SysctlOptions options) {
  if (options.root.empty() || options.state_directory.empty()) {
    return fail(Errc::invalid, "the folders of settings and of their old values must be named");
  }
  return std::unique_ptr<SysctlDriver>(new SysctlDriver(std::move(options)));
}

netstate::Slices SysctlDriver::slices() const {
  return {netstate::Slice::sysctls};
}

Result<void> SysctlDriver::observe(netstate::Slices wanted, netstate::State& into) {
  if (!wanted.has(netstate::Slice::sysctls)) return {};
  into.sysctls.clear();
  FABRIC_TRY(const auto keys, kept_keys(options_));
  for (const auto& key : keys) {
    auto value = read_sysctl(options_, key);
    // A setting that is gone is reported all the same, so that a diff removes what is kept of it.
    if (!value && value.error().code != Errc::not_found) return std::unexpected(std::move(value).error());
    into.sysctls[key] = value ? *std::move(value) : std::string();
  }
  return {};
}

Result<void> SysctlDriver::put(const netstate::SysctlObject& object) {
  FABRIC_TRY(const auto present, read_sysctl(options_, object.name));
  FABRIC_CHECK(keep(options_, object.name, present));
  if (present == object.value) return {};
  return write_file(fmt::format("{}/{}", options_.root, object.name), object.value, 0);
}

Result<void> SysctlDriver::restore(const std::string& key) {
  FABRIC_CHECK(check_key(key));
  const auto path = options_.state_directory + "/" + file_name(key);
  const auto old = read_file(path);
  if (!old && old.error().code == Errc::not_found) return {};
  if (!old) return std::unexpected(old.error());
  auto written = write_file(fmt::format("{}/{}", options_.root, key), *old, 0);
  if (!written && written.error().code != Errc::not_found) return written;
  ::unlink(path.c_str());
  ::rmdir(options_.state_directory.c_str());  // Fails while another value is kept.
  return {};
}

std::vector<Result<void>> SysctlDriver::apply(std::span<const netstate::Step> steps) {
  std::vector<Result<void>> results;
  for (const auto& step : steps) {
    const auto* object = std::get_if<netstate::SysctlObject>(&step.object);
    if (object == nullptr) {
      results.push_back(fail(Errc::unsupported, "not a setting below /proc/sys"));
    } else {
      results.push_back(step.verb == netstate::Verb::remove ? restore(object->name) : put(*object));
    }
  }
  return results;
}

}  // namespace fabric::kernel
