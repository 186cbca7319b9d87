#ifndef PENSTOCK_CLIENT_CAPI_GRPC_LIBRARY_H_
#define PENSTOCK_CLIENT_CAPI_GRPC_LIBRARY_H_

#include "client/capi/result.h"
#include "client/session/session_api.h"

namespace penstock::capi {

// Opens libpenstock_grpc.so from the folder of this library, once a process,
// with symbols of its own (RTLD_DEEPBIND), so that a trainer's own gRPC is
// neither used nor disturbed.
//
// PS_FAILED: it is not there, or of another version
Result GrpcApi(const psg_api** api);

}  // namespace penstock::capi

#endif  // PENSTOCK_CLIENT_CAPI_GRPC_LIBRARY_H_
