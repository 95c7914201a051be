#include <fabric/json/time.hpp>

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

namespace fabric::json {

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// Reads from the front of a text; a failed step leaves `ok` false and every later step harmless.
struct Cursor {
  std::string_view rest;
  bool ok = true;

  int digits(std::size_t count) {
    int out = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (i >= rest.size() || rest[i] < '0' || rest[i] > '9') {
        ok = false;
        return 0;
      }
      out = out * 10 + (rest[i] - '0');
    }
    rest.remove_prefix(count);
    return out;
  }

  bool take(char c) {
    if (rest.empty() || rest.front() != c) return false;
    rest.remove_prefix(1);
    return true;
  }

  void expect(char c) { ok = take(c) && ok; }
};

// Microseconds of ".123456789"; an empty fraction after the point is refused.
microseconds fraction(Cursor& cursor) {
  if (!cursor.take('.')) return {};
  std::int64_t value = 0;
  int count = 0;
  for (; !cursor.rest.empty() && cursor.rest.front() >= '0' && cursor.rest.front() <= '9'; ++count) {
    if (count < 6) value = value * 10 + (cursor.rest.front() - '0');
    cursor.rest.remove_prefix(1);
  }
  cursor.ok = cursor.ok && count > 0 && count <= 9;
  for (; count < 6; ++count)
    value *= 10;
  return microseconds(value);
}

std::chrono::minutes offset(Cursor& cursor) {
  if (cursor.take('Z') || cursor.take('z')) return {};
  const bool negative = cursor.take('-');
  if (!negative) cursor.expect('+');
  const int hours = cursor.digits(2);
  cursor.expect(':');
  const int minutes = cursor.digits(2);
  cursor.ok = cursor.ok && hours < 24 && minutes < 60;
  return std::chrono::minutes((negative ? -1 : 1) * (hours * 60 + minutes));
}

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};

// Longer names come before their prefixes.
constexpr std::array kUnits{Unit{"ns", 1},
                            Unit{"us", 1'000},
                            Unit{"\u00b5s", 1'000},
                            Unit{"ms", 1'000'000},
                            Unit{"s", 1'000'000'000},
                            Unit{"m", 60'000'000'000},
                            Unit{"h", 3'600'000'000'000}};

// Digits before and after the point as one number and its scale; digits beyond the ninth are cut.
struct Decimal {
  std::int64_t whole = 0;
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
};

std::optional<Decimal> decimal(std::string_view& text) {
  Decimal out;
  std::size_t count = 0;
  const auto next = [&] { return !text.empty() && text.front() >= '0' && text.front() <= '9'; };
  for (; next(); text.remove_prefix(1), ++count) {
    if (__builtin_mul_overflow(out.whole, 10, &out.whole) ||
        __builtin_add_overflow(out.whole, text.front() - '0', &out.whole)) {
      return std::nullopt;
    }
  }
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    for (; next(); text.remove_prefix(1), ++count) {
      if (out.denominator >= 1'000'000'000) continue;
      out.numerator = out.numerator * 10 + (text.front() - '0');
      out.denominator *= 10;
    }
  }
  return count > 0 ? std::optional(out) : std::nullopt;
}

const Unit* unit(std::string_view& text) {
  for (const auto& candidate : kUnits) {
    if (!text.starts_with(candidate.name)) continue;
    text.remove_prefix(candidate.name.size());
    return &candidate;
  }
  return nullptr;
}

// Exact and without overflow: units of a second and more are multiples of every denominator.
std::int64_t part_of(const Decimal& number, std::int64_t nanoseconds) {
  if (nanoseconds % number.denominator == 0) return nanoseconds / number.denominator * number.numerator;
  return number.numerator * nanoseconds / number.denominator;
}

std::unexpected<Error> no_duration(std::string_view text) {
  return fail(Errc::invalid, "'{}' is no duration: write it like 1h30m, 90s or 250ms", text.substr(0, 64));
}

}  // namespace

Result<MicroTime> parse_time(std::string_view text) {
  Cursor cursor{text};
  const std::chrono::year year(cursor.digits(4));
  cursor.expect('-');
  const std::chrono::month month(static_cast<unsigned>(cursor.digits(2)));
  cursor.expect('-');
  const std::chrono::day day(static_cast<unsigned>(cursor.digits(2)));
  if (!cursor.take('t')) cursor.expect('T');
  const int hour = cursor.digits(2);
  cursor.expect(':');
  const int minute = cursor.digits(2);
  cursor.expect(':');
  const int second = cursor.digits(2);
  const microseconds part = fraction(cursor);
  const std::chrono::minutes zone = offset(cursor);
  const std::chrono::year_month_day date(year, month, day);
  if (!cursor.ok || !cursor.rest.empty() || !date.ok() || hour > 23 || minute > 59 || second > 60) {
    return fail(Errc::invalid, "'{}' is no RFC 3339 time: write it like 2006-01-02T15:04:05Z", text.substr(0, 64));
  }
  return MicroTime(std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
                   std::chrono::minutes(minute) + std::chrono::seconds(second) + part - zone);
}

namespace {

std::string date_and_time(std::chrono::sys_seconds time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

}  // namespace

std::string format_time(TimePoint time) {
  return date_and_time(std::chrono::floor<std::chrono::seconds>(time)) + "Z";
}

std::string format_micro_time(MicroTime time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{}.{:06}Z", date_and_time(whole), (time - whole).count());
}

Result<nanoseconds> parse_duration(std::string_view text) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "0") return nanoseconds(0);
  if (rest.empty()) return no_duration(text);
  std::int64_t total = 0;
  while (!rest.empty()) {
    const auto number = decimal(rest);
    const Unit* scale = number ? unit(rest) : nullptr;
    std::int64_t term = 0;
    if (scale == nullptr || __builtin_mul_overflow(number->whole, scale->nanoseconds, &term) ||
        __builtin_add_overflow(term, part_of(*number, scale->nanoseconds), &term) ||
        __builtin_add_overflow(total, term, &total)) {
      return no_duration(text);
    }
  }
  return nanoseconds(negative ? -total : total);
}

namespace {

// "1.5" without trailing zeros.
std::string trimmed(std::uint64_t value, std::uint64_t scale, int digits) {
  std::string out = fmt::format("{}.{:0{}}", value / scale, value % scale, digits);
  while (out.back() == '0')
    out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out;
}

}  // namespace

std::string format_duration(nanoseconds duration) {
  if (duration.count() == 0) return "0s";
  const bool negative = duration.count() < 0;
  const std::uint64_t ns =
      negative ? 0 - static_cast<std::uint64_t>(duration.count()) : static_cast<std::uint64_t>(duration.count());
  std::string out = negative ? "-" : "";
  if (ns < 1'000) return out + fmt::format("{}ns", ns);
  if (ns < 1'000'000) return out + trimmed(ns, 1'000, 3) + "us";
  if (ns < 1'000'000'000) return out + trimmed(ns, 1'000'000, 6) + "ms";
  const std::uint64_t minutes = ns / 60'000'000'000;
  if (minutes >= 60) out += fmt::format("{}h", minutes / 60);
  if (minutes > 0) out += fmt::format("{}m", minutes % 60);
  return out + trimmed(ns % 60'000'000'000, 1'000'000'000, 9) + "s";
}

}  // namespace fabric::json
