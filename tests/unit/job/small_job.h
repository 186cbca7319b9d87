#ifndef PENSTOCK_TESTS_UNIT_JOB_SMALL_JOB_H_
#define PENSTOCK_TESTS_UNIT_JOB_SMALL_JOB_H_

#include <string>

#include "common/job/attach.h"
#include "common/job/job_record.h"

namespace penstock::job::test {

inline std::string Digest(char c) { return std::string(64, c); }

inline AttachIntent Intent(const std::string& incarnation = "run-1",
                           const std::string& resume = "new") {
  AttachIntent i;
  i.job = "walk";
  i.incarnation = incarnation;
  i.resume = resume;
  i.data_world = 4;
  i.order_digest = Digest('a');
  i.content_digest = Digest('b');
  i.selection_digest = Digest('c');
  i.dataset_ids = {Digest('d'), Digest('e')};
  return i;
}

inline CreateJob Create(std::uint64_t start = 0) {
  const AttachIntent i = Intent();
  return {i.job, {start, i.order_digest, i.content_digest}, i.dataset_ids,
          i.selection_digest, {1, i.incarnation, i.data_world, start}};
}

inline OpenGeneration Open(std::uint64_t number, std::uint64_t start,
                           char content = 'b') {
  return {{number, "run-" + std::to_string(number), 4, start},
          {start, Digest('a'), Digest(content)}};
}

// The record after events that are all accepted.
template <typename... Events>
JobRecord After(const Events&... events) {
  JobRecord record;
  for (const Event& e : {Event(events)...}) record = Apply(record, e).value();
  return record;
}

}  // namespace penstock::job::test

#endif  // PENSTOCK_TESTS_UNIT_JOB_SMALL_JOB_H_
