#include <fabric/json/base64.hpp>
#include <fabric/kube/config.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace fabric::kube {
namespace {

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fabric-kube-config-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }

  ~ConfigTest() override { std::filesystem::remove_all(folder_); }

  ConfigTest(const ConfigTest&) = delete;
  ConfigTest& operator=(const ConfigTest&) = delete;

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  /// A kubeconfig with these members of the cluster and of the user.
  Result<Config> parse(const std::string& cluster, const std::string& user, std::string_view context = {}) const {
    return parse_kubeconfig(
        "current-context: one\n"
        "contexts:\n"
        "- {name: one, context: {cluster: c, user: u, namespace: n}}\n"
        "- {name: two, context: {cluster: c}}\n"
        "- {name: lost, context: {cluster: none, user: u}}\n"
        "clusters: [{name: c, cluster: {" +
            cluster +
            "}}]\n"
            "users: [{name: u, user: {" +
            user + "}}]\n",
        folder_, context);
  }

  std::filesystem::path folder_;
};

TEST_F(ConfigTest, ReadsInlineCertificates) {
  const auto config = parse(
      "server: 'https://h:6443/', tls-server-name: real, certificate-authority-data: " + json::encode_base64("CA"),
      "client-certificate-data: " + json::encode_base64("CERT") + ", client-key-data: " + json::encode_base64("KEY"));
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->server, "https://h:6443");
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->tls_server_name, "real");
  EXPECT_EQ(config->client_certificate_pem, "CERT");
  EXPECT_EQ(config->client_key_pem.reveal_text(), "KEY");
  EXPECT_EQ(config->ns, "n");
  EXPECT_FALSE(config->insecure_skip_tls_verify);
}

TEST_F(ConfigTest, ReadsFilesBesideTheKubeconfig) {
  write("ca.crt", "CA");
  write("tls.crt", "CERT");
  write("tls.key", "KEY");
  const auto config = parse("server: 'https://h', certificate-authority: ca.crt",
                            "client-certificate: tls.crt, client-key: '" + (folder_ / "tls.key").string() + "'");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->client_certificate_pem, "CERT");
  EXPECT_EQ(config->client_key_pem.reveal_text(), "KEY");
}

TEST_F(ConfigTest, ReadsTokensAndTakesTheFileFirst) {
  const auto fixed = parse("server: 'https://h'", "token: abc");
  ASSERT_TRUE(fixed) << fixed.error().message();
  EXPECT_EQ(fixed->token.reveal_text(), "abc");
  const auto file = parse("server: 'https://h'", "token: abc, tokenFile: t");
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_TRUE(file->token.empty());
  EXPECT_EQ(file->token_file, folder_ / "t");
}

TEST_F(ConfigTest, TakesAnotherContextByName) {
  const auto config = parse("server: 'https://h', insecure-skip-tls-verify: true", "token: abc", "two");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_TRUE(config->token.empty()) << "the context has no user";
  EXPECT_EQ(config->ns, "default");
  EXPECT_TRUE(config->insecure_skip_tls_verify);
}

TEST_F(ConfigTest, ErrorsNameWhatIsWrong) {
  struct Row {
    const char* cluster;
    const char* user;
    const char* context;
    Errc code;
    const char* part;
  };

  for (const Row& row : {
           Row{"server: ''", "", "", Errc::invalid, "cluster 'c': server: required"},
           Row{"server: 'https://h', certificate-authority: none.crt", "", "", Errc::not_found, "none.crt"},
           Row{"server: 'https://h', certificate-authority-data: '***'", "", "", Errc::invalid,
               "certificate-authority-data"},
           Row{"server: 'https://h', insecure-skip-tls-verify: true, certificate-authority-data: QQ==", "", "",
               Errc::invalid, "exclude each other"},
           Row{"server: 'https://h', proxy-url: 'http://p'", "", "", Errc::unsupported, "proxy-url"},
           Row{"server: 'https://h'", "exec: {command: aws}", "", Errc::unsupported, "user 'u': exec"},
           Row{"server: 'https://h'", "client-certificate-data: QQ==", "", Errc::invalid, "both or neither"},
           Row{"server: 'https://h'", "", "three", Errc::not_found, "contexts: no entry is named 'three'"},
           Row{"server: 'https://h'", "", "lost", Errc::not_found, "clusters: no entry is named 'none'"},
       }) {
    const auto config = parse(row.cluster, row.user, row.context);
    ASSERT_FALSE(config) << row.part;
    EXPECT_EQ(config.error().code, row.code) << row.part;
    EXPECT_NE(config.error().message().find(row.part), std::string::npos) << config.error().message();
  }
  EXPECT_EQ(parse_kubeconfig("{}", folder_).error().code, Errc::invalid);
  EXPECT_EQ(parse_kubeconfig("a: [", folder_).error().code, Errc::invalid);
  EXPECT_EQ(load_kubeconfig(folder_ / "none").error().code, Errc::not_found);
}

TEST_F(ConfigTest, InClusterComesFromTheServiceAccountFolder) {
  write("ca.crt", "CA");
  write("token", "t");
  write("namespace", "submariner-operator\n");
  const auto config = load_in_cluster({"fd00::1", "443", folder_});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->server, "https://[fd00::1]:443");
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->token_file, folder_ / "token");
  EXPECT_EQ(config->ns, "submariner-operator");
  EXPECT_EQ(load_in_cluster({"10.0.0.1", "443", folder_})->server, "https://10.0.0.1:443");
}

TEST_F(ConfigTest, InClusterSaysWhatIsMissing) {
  const auto outside = load_in_cluster({"", "", folder_});
  ASSERT_FALSE(outside);
  EXPECT_NE(outside.error().message().find("KUBERNETES_SERVICE_HOST"), std::string::npos);
  const auto no_authority = load_in_cluster({"h", "1", folder_});
  ASSERT_FALSE(no_authority);
  EXPECT_EQ(no_authority.error().code, Errc::not_found);
  EXPECT_NE(no_authority.error().message().find("ca.crt"), std::string::npos);
}

TEST_F(ConfigTest, AnExplicitServerIsReachedByTlsOnly) {
  EXPECT_EQ(explicit_config("http://h", "", Secret(), "n").error().code, Errc::invalid);
  const auto config = explicit_config("https://h:6443/", "CA", Secret::from_text("t"), "n");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->server, "https://h:6443");
  EXPECT_EQ(config->token.reveal_text(), "t");
}

}  // namespace
}  // namespace fabric::kube
