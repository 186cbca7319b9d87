#ifndef PENSTOCK_SERVER_TRANSPORT_DELIVERY_PROTO_H_
#define PENSTOCK_SERVER_TRANSPORT_DELIVERY_PROTO_H_

#include <vector>

#include "absl/status/statusor.h"
#include "penstock/v1/delivery.pb.h"
#include "server/pipeline/job_manager.h"

// Generated messages stop here.
namespace penstock::transport {

// kInvalidArgument: speeds that are none of the data ranks, no such cut
absl::StatusOr<pipeline::AttachArgs> FromProto(const v1::AttachRequest& in);
void ToProto(const pipeline::AttachResult& in, v1::AttachReply& out);
std::vector<pipeline::ArenaSlot> FromProto(
    const google::protobuf::RepeatedPtrField<v1::SlotRef>& in);
pipeline::ArenaSlot FromProto(const v1::SlotRef& in);
void ToProto(const pipeline::PublishedBatch& in, std::uint64_t arena,
             std::uint64_t bytes, v1::Batch& out);
void ToProto(const pipeline::JobView& in, v1::JobStatus& out);

}  // namespace penstock::transport

#endif  // PENSTOCK_SERVER_TRANSPORT_DELIVERY_PROTO_H_
