#ifndef PENSTOCK_SERVER_CLI_COUNTING_H_
#define PENSTOCK_SERVER_CLI_COUNTING_H_

#include "server/dataset/plan_source.h"

namespace penstock::cli {

// Says on stderr, once it takes longer than a second, that packs are counted and
// how far it is.
void ShowCounting(const dataset::OpenedFeed& feed);

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_COUNTING_H_
