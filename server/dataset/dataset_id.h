#ifndef PENSTOCK_SERVER_DATASET_DATASET_ID_H_
#define PENSTOCK_SERVER_DATASET_DATASET_ID_H_

#include <span>
#include <string_view>

#include "common/hash/hash.h"

namespace penstock::dataset {

// The identity of a dataset version: SHA-256 over the parts below, each with a
// name and a length before it (README.md). Not in it: lineage, paths, times,
// tool version, the SQLite file.
//
// schema:         canonical JSON text of the manifest's schema
// canonical_rows: CatalogWriter::CanonicalRows()
// capture_index:  the bytes of captures.pidx
// shards:         SHA-256 of the shard files, in shard order
Digest256 ComputeDatasetId(std::string_view schema,
                           std::string_view canonical_rows,
                           hash::Bytes capture_index,
                           std::span<const Digest256> shards);

// SHA-256 over capture ids in the given order: the selection digest.
Digest256 SelectionDigest(std::span<const Digest256> capture_ids);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_DATASET_ID_H_
