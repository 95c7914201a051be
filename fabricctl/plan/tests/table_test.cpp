#include <fabric/ctl/table.hpp>

#include <gtest/gtest.h>

namespace fabric::ctl {
namespace {

using namespace std::chrono_literals;

TEST(Table, AlignsColumnsAndMarksEmptyCells) {
  const Table table{{"NAME", "STATUS", "NOTE"}, {{"a", "connected", ""}, {"longer", "", "two\nlines"}}};
  EXPECT_EQ(render(table, 2),
            "  NAME     STATUS      NOTE\n"
            "  a        connected   -\n"
            "  longer   -           two lines\n");
}

TEST(Table, WithoutRowsIsNothing) {
  EXPECT_EQ(render(Table{{"NAME"}, {}}), "");
}

TEST(Table, ControlCharactersOfForeignObjectsDoNotReachTheTerminal) {
  EXPECT_EQ(one_line("a\x1b[31mb\tc\x7f"), "a [31mb c ");
}

TEST(Age, HasTwoUnitsAtMost) {
  struct Row {
    Duration duration;
    const char* text;
  };

  for (const Row& row : {Row{-5s, "0s"}, Row{0s, "0s"}, Row{59'999ms, "59s"}, Row{60s, "1m"}, Row{59min + 59s, "59m"},
                         Row{1h, "1h"}, Row{3h + 20min, "3h20m"}, Row{24h, "1d"}, Row{24h * 5 + 4h + 59min, "5d4h"}}) {
    EXPECT_EQ(age(row.duration), row.text);
  }
}

}  // namespace
}  // namespace fabric::ctl
