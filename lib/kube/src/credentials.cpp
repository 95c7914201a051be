#include <fabric/kube/credentials.hpp>

#include <chrono>
#include <utility>

#include "files.hpp"

namespace fabric::kube {
namespace {

// The kubelet replaces a projected token when 80 % of its life (at least ten minutes) are over; client-go rereads
// every minute as well.
constexpr std::chrono::minutes kReadAgain{1};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

Result<std::shared_ptr<const Secret>> read_token(const std::filesystem::path& path) {
  FABRIC_TRY(const Secret text, read_secret_file(path));
  const std::string_view token = trimmed(text.reveal_text());
  if (token.empty()) return fail(Errc::invalid, "token file {}: empty", path.string());
  return std::make_shared<const Secret>(Secret::from_text(token));
}

}  // namespace

std::shared_ptr<Credentials> Credentials::none() {
  return std::shared_ptr<Credentials>(new Credentials());
}

std::shared_ptr<Credentials> Credentials::fixed(Secret token) {
  auto out = none();
  out->token_ = std::make_shared<const Secret>(std::move(token));
  return out;
}

Result<std::shared_ptr<Credentials>> Credentials::from_file(std::filesystem::path path, async::Clock& clock) {
  auto out = none();
  FABRIC_TRY(out->token_, read_token(path));
  out->file_ = std::move(path);
  out->clock_ = &clock;
  out->read_at_ = clock.steady();
  return out;
}

std::shared_ptr<const Secret> Credentials::token() {
  if (file_ && clock_->steady() - read_at_ >= kReadAgain) reload();
  return token_;
}

bool Credentials::refused() {
  return file_ && reload();
}

bool Credentials::reload() {
  read_at_ = clock_->steady();
  auto fresh = read_token(*file_);
  if (!fresh || (*fresh)->equals(*token_)) return false;
  token_ = *std::move(fresh);
  return true;
}

}  // namespace fabric::kube
