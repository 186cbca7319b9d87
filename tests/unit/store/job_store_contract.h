#ifndef PENSTOCK_TESTS_UNIT_STORE_JOB_STORE_CONTRACT_H_
#define PENSTOCK_TESTS_UNIT_STORE_JOB_STORE_CONTRACT_H_

#include <functional>
#include <memory>
#include <string>

#include "server/store/job_store.h"

namespace penstock::store::test {

// An implementation to be held to the contract.
struct StoreMaker {
  std::string name;
  std::function<std::unique_ptr<JobStore>()> open;
  bool durable = false;  // open() again finds what was written
};

inline job::CreateJob Create(const std::string& job) {
  return {job, {0, std::string(64, 'a'), std::string(64, 'b')},
          {std::string(64, 'd')}, std::string(64, 'c'), {1, "run-1", 2, 0}};
}

inline job::OpenGeneration Open(std::uint64_t number, std::uint64_t start) {
  return {{number, "run-" + std::to_string(number), 2, start},
          {start, std::string(64, 'a'), std::string(64, 'b')}};
}

// The laws of JobStore, as Catch2 checks.
void CheckContract(const StoreMaker& maker);

}  // namespace penstock::store::test

#endif  // PENSTOCK_TESTS_UNIT_STORE_JOB_STORE_CONTRACT_H_
