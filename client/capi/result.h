#ifndef PENSTOCK_CLIENT_CAPI_RESULT_H_
#define PENSTOCK_CLIENT_CAPI_RESULT_H_

#include <penstock/client.h>

#include <string>
#include <utility>

// The client library carries no Abseil: it would be a second copy in the
// trainer's process. A result is a code and a message.
namespace penstock::capi {

struct Result {
  ps_code code = PS_OK;
  std::string message;
  bool ok() const { return code == PS_OK; }
};

inline Result Fail(ps_code code, std::string message) {
  return {code, std::move(message)};
}

// Where, what, found, expected, do: what an error of ours says.
struct Problem {
  std::string where, what, found, expected, action;
};
inline Result Fail(ps_code code, const Problem& p) {
  return {code, p.where + ": " + p.what + "\n  found     " + p.found +
                    "\n  expected  " + p.expected + "\n  do        " +
                    p.action};
}

// A gRPC status code as one of ours.
ps_code FromGrpc(int code);

// Writes a result to a caller's ps_error (may be null); gives its code.
ps_code Report(const Result& result, ps_error* error);

}  // namespace penstock::capi

#endif  // PENSTOCK_CLIENT_CAPI_RESULT_H_
