#include <catch2/catch.hpp>

#include "server/dataset/dataset.h"
#include "tests/unit/dataset/small_dataset.h"

namespace penstock::dataset {
namespace {

using Ords = std::vector<std::uint32_t>;

struct World {
  test::TempDir dir;
  std::unique_ptr<Dataset> dataset;
  World() {
    test::WriteDataset(dir.path(), {"doom", "wolf", "Doom II", "quake"});
    dataset = Dataset::Open(dir.path()).value();
  }
};

TEST_CASE("filter: predicates over captures and conditions", "[dataset]") {
  World w;
  const auto select = [&](const char* filter) {
    auto out = w.dataset->Select(filter);
    INFO(out.status().message());
    REQUIRE(out.ok());
    return *out;
  };
  CHECK(select("") == Ords{0, 1, 2, 3});
  CHECK(select("title = 'wolf'") == Ords{1});
  CHECK(select("title LIKE 'doom%' OR frames > 300") == Ords{0, 2, 3});
  CHECK(select("conditions ->> 'weather' = 'rain'") == Ords{0, 2});
  CHECK(select("conditions ->> 'absent' IS NULL") == Ords{0, 1, 2, 3});
  CHECK(select("title = 'it''s )' OR title = 'a;--b'") == Ords{});
  CHECK(select("EXISTS (SELECT 1 FROM tracks t WHERE t.capture = captures.ord "
               "AND t.name = 'cam' AND t.rows >= 300)") == Ords{2, 3});
  CHECK(select("(SELECT count(*) FROM spans s WHERE s.capture = captures.ord) "
               "= 1") == Ords{0, 1, 2, 3});
  CHECK(select("id LIKE '02%'") == Ords{2});
  CHECK(select("length(upper(trim(title))) = 5 AND round(duration_s) > 6") ==
        Ords{3});
}

TEST_CASE("filter: what is not pure or not a predicate is refused by name",
          "[dataset]") {
  World w;
  const std::pair<const char*, const char*> cases[] = {
      {"random() > 0", "random()"},
      {"hex(randomblob(4)) > 'a'", "randomblob()"},
      {"current_timestamp > ''", "current_timestamp()"},
      {"date('now') > ''", "date()"},
      {"datetime('now') > ''", "datetime()"},
      {"strftime('%s', 'now') > 0", "strftime()"},
      {"load_extension('x')", "load_extension"},
      {"last_insert_rowid() = 0", "last_insert_rowid()"},
      {"sqlite_version() > ''", "sqlite_version()"},
      {"source LIKE '%home%'", "no such column: source"},
      {"(SELECT source FROM main.captures LIMIT 1) > ''", "captures.source"},
      {"(SELECT detector FROM spans LIMIT 1) > ''", "spans.detector"},
      {"(SELECT sql FROM sqlite_master LIMIT 1) > ''", "sqlite_master"},
      {"(SELECT 1 FROM pragma_table_info('captures')) = 1", "not allowed"},
      {"titel = 'x'", "no such column: titel"},
      {"title = \"wolf\"", "no such column: wolf"},
      {"1) UNION SELECT ord FROM captures WHERE (1", "parenthesis too many"},
      {"1; DROP TABLE captures", "statements"},
      {"1 -- x", "comments"},
      {"1 /* x", "comments"},
      {"(1", "not closed"},
      {"title = 'x", "not closed"},
      {"ord = ?", "parameters"},
      {"ord = ", "syntax error"},
      {"count(*) > 0", "misuse of aggregate"},
  };
  for (auto [filter, part] : cases) {
    const auto status = w.dataset->Select(filter).status();
    INFO(filter << ": " << status.message());
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(std::string(status.message()).find(part) != std::string::npos);
  }
}

TEST_CASE("filter: work, memory and text are bounded", "[dataset]") {
  World w;
  const auto refused = [&](const std::string& filter) {
    const auto status = w.dataset->Select(filter).status();
    INFO(status.message().substr(0, 300));
    CHECK_FALSE(status.ok());
    return status.code();
  };
  CHECK(
      refused("(WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) "
              "SELECT count(*) FROM c) > 0") ==
      absl::StatusCode::kInvalidArgument);
  std::string cross = "(SELECT count(*) FROM tracks";
  for (int i = 0; i < 20; ++i) cross += ", spans s" + std::to_string(i);
  CHECK(refused(cross + ") > 0") == absl::StatusCode::kResourceExhausted);
  std::string grow = "title";
  for (int i = 0; i < 12; ++i) grow = "replace(" + grow + ", 'o', 'oooooooo')";
  CHECK(refused("length(" + grow + ") > 0") ==
        absl::StatusCode::kResourceExhausted);
  refused("title = '" + std::string(70'000, 'x') + "'");
  refused(std::string(5000, '(') + "1" + std::string(5000, ')'));
  // The connection works after all that.
  CHECK(w.dataset->Select("title = 'wolf'").value() == Ords{1});
  CHECK(w.dataset->Capture(1)->source == "/home/somebody/wolf.mp4");
}

}  // namespace
}  // namespace penstock::dataset
