#ifndef PENSTOCK_CLIENT_CAPI_OPTIONS_H_
#define PENSTOCK_CLIENT_CAPI_OPTIONS_H_

#include <cstdint>
#include <string>

#include "client/capi/result.h"

namespace penstock::capi {

// Options of ps_attach with strings of its own and defaults filled in.
struct Options {
  std::string address, job, feed_path, feed_text, feed_dir, incarnation, resume,
      speeds, cp_cut;
  std::uint32_t data_rank = 0, data_world = 1, ranks_per_node = 0;
  std::uint32_t cp_rank = 0, cp_size = 1, pp_rank = 0, pp_size = 1;
  bool ack_leader = true, explicit_ack = false, takeover = false;
  std::uint64_t deadline_ms = 120'000, first_deadline_ms = 600'000;
  std::uint64_t absent_deadline_ms = 600'000;
};

// Reads the options, the feed file and the environment.
//
// PS_INVALID: what is missing, unreadable or contradictory
Result ReadOptions(const ps_attach_options& in, Options* out);

}  // namespace penstock::capi

#endif  // PENSTOCK_CLIENT_CAPI_OPTIONS_H_
