#include <fabric/base/assert.hpp>
#include <fabric/telemetry/log.hpp>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <sstream>

namespace fabric::log {

namespace {

constexpr auto kPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v})";
constexpr auto kPatternWithoutTime = "{%v}";

// Constant-initialised, so that static constructors may log.
constinit std::atomic<Level> lowest{Level::info};

std::shared_ptr<spdlog::logger> make_logger(const spdlog::sink_ptr& sink, const char* pattern) {
  auto logger = std::make_shared<spdlog::logger>("fabric", sink);
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc));
  logger->set_level(spdlog::level::trace);
  logger->flush_on(spdlog::level::trace);
  return logger;
}

std::shared_ptr<spdlog::logger>& current() {
  // Never destroyed: destructors of static objects may log.
  static auto& logger = *new auto(make_logger(std::make_shared<spdlog::sinks::stderr_sink_mt>(), kPattern));
  return logger;
}

std::ostringstream& captured() {
  static auto& stream = *new std::ostringstream;
  return stream;
}

bool capturing = false;

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warn:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  out += '"';
}

struct AppendValue {
  std::string& out;

  void operator()(bool value) const { out += value ? "true" : "false"; }

  void operator()(std::int64_t value) const { out += fmt::to_string(value); }

  void operator()(std::uint64_t value) const { out += fmt::to_string(value); }

  void operator()(double value) const {
    // JSON has no NaN and no infinity.
    if (std::isfinite(value)) {
      out += fmt::to_string(value);
    } else {
      append_quoted(out, fmt::to_string(value));
    }
  }

  void operator()(const std::string& value) const { append_quoted(out, value); }
};

}  // namespace

std::string_view to_string(Level level) {
  switch (level) {
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warn:
      return "warn";
    case Level::error:
      return "error";
  }
  return "error";
}

Result<Level> parse_level(std::string_view text) {
  for (const auto level : {Level::debug, Level::info, Level::warn, Level::error}) {
    if (text == to_string(level)) return level;
  }
  return fail(Errc::invalid, "log level '{}': use debug, info, warn or error", text);
}

void set_level(Level level) {
  lowest = level;
}

bool enabled(Level level) {
  return level >= lowest;
}

void write(Level level, Message message, Fields fields) {
  if (!enabled(level)) return;
  std::string line = R"("level":")";
  line += to_string(level);
  line += R"(","message":)";
  append_quoted(line, message.text());
  for (const auto& field : fields) {
    line += ',';
    append_quoted(line, field.key());
    line += ':';
    std::visit(AppendValue{line}, field.value());
  }
  // As a string_view: spdlog would read braces in a format string.
  current()->log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

Capture::Capture() {
  FABRIC_ASSERT(!capturing);
  capturing = true;
  captured().str({});
  current() = make_logger(std::make_shared<spdlog::sinks::ostream_sink_mt>(captured()), kPatternWithoutTime);
  previous_ = lowest.exchange(Level::debug);
}

Capture::~Capture() {
  capturing = false;
  current() = make_logger(std::make_shared<spdlog::sinks::stderr_sink_mt>(), kPattern);
  lowest = previous_;
}

std::string Capture::text() const {
  return captured().str();
}

}  // namespace fabric::log
