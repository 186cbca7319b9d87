#ifndef PENSTOCK_CLIENT_SESSION_SESSION_API_H_
#define PENSTOCK_CLIENT_SESSION_SESSION_API_H_

#include <stddef.h>
#include <stdint.h>

// What libpenstock.so asks of libpenstock_grpc.so, which it opens with
// RTLD_LOCAL | RTLD_DEEPBIND: plain C, so that no type of gRPC or Protobuf
// crosses between them or is seen by the trainer's process.
//
// Threads: calls of one session from any thread. Strings that go in are borrowed
// for the call; what comes out lives as the comments say.
#ifdef __cplusplus
extern "C" {
#endif

typedef struct psg_session psg_session;
typedef struct psg_batch psg_batch;

// Codes are those of gRPC (0 OK, 4 deadline, 14 unavailable, …).
typedef struct psg_error {
  int code;
  char text[2048];
} psg_error;

typedef struct psg_slot {
  uint64_t arena, offset, generation;
} psg_slot;

typedef struct psg_tensor {
  const char* name;
  const char* dtype;
  uint32_t dims;
  uint64_t shape[8], strides[8];
  uint64_t offset;
} psg_tensor;

typedef struct psg_shape {
  const char* name;
  const psg_tensor* tensors;
  uint32_t tensor_count;
} psg_shape;

typedef struct psg_attach_in {
  const char *session, *job, *feed, *feed_where, *feed_dir, *incarnation,
      *resume, *peer, *speeds, *cp_cut;
  uint32_t data_rank, data_world, ranks_per_node;
  uint32_t cp_rank, cp_size, pp_rank, pp_size;
  int ack_leader, explicit_ack, takeover;
  int has_position;
  uint64_t position;
  uint64_t timeout_ms;
} psg_attach_in;

// Lives until the next attach of the session or its close.
typedef struct psg_attach_out {
  const char *session, *job, *order_digest, *content_digest, *selection_digest,
      *cursor_head /* of state_dict */, *notes /* lines */;
  uint64_t generation, start_step, total_steps, batch_bytes, microbatches,
      global_batch, arena, arena_bytes;
  uint64_t unit_stride, units;
  const psg_shape* shapes;
  uint32_t shape_count;
} psg_attach_out;

// Lives until free_batch.
typedef struct psg_batch_view {
  uint64_t step, bytes, samples, global_samples, units, tokens, global_tokens;
  double loss_scale;
  psg_slot slot;
  const char *const *sample_ids, *const *item_digests;
  uint32_t sample_count;
  const uint32_t *unit_shapes, *unit_samples;  // of those that are not masked
  uint32_t unit_count;
  const char *batch_digest, *global_digest;
  uint64_t plan_ns, fetch_ns, decode_ns, assemble_ns, total_ns;
} psg_batch_view;

typedef struct psg_api {
  // `target` as gRPC takes it: "unix:/path", "ipv4:127.0.0.1:50051".
  psg_session* (*open)(const char* target);
  int (*attach)(psg_session*, const psg_attach_in*, psg_attach_out*, psg_error*);
  // 0: batches[0] is the step's and *count - 1 more follow in order, where they
  // were published already; 1 and *count 0: the data ended; else an error (-1).
  // Steps before `acked_next` are trained.
  int (*next)(psg_session*, uint64_t step, uint64_t acked_next,
              uint64_t timeout_ms, const psg_slot* release, size_t releases,
              psg_batch** batches, size_t room, size_t* count, psg_error*);
  void (*view)(const psg_batch*, psg_batch_view*);
  void (*free_batch)(psg_batch*);
  int (*release)(psg_session*, const psg_slot*, size_t, psg_error*);
  int (*ack)(psg_session*, uint64_t step, psg_error*);
  int (*checkpoint)(psg_session*, const char* name, uint64_t next_step,
                    psg_error*);
  // Remote: copies the bytes of a slot into `into`.
  int (*read)(psg_session*, psg_slot, void* into, uint64_t bytes,
              uint64_t timeout_ms, psg_error*);
  int (*detach)(psg_session*, psg_error*);
  // Ends every call that waits, and every later one, with code 1 (cancelled).
  void (*cancel)(psg_session*);
  // Ends attach, next and read that wait now with code 1; later ones work.
  void (*interrupt)(psg_session*);
  // Before a fork: closes the connections of the sessions, which no call may
  // use now, and ends gRPC's own threads; the next call connects again. A remote
  // session ends with its connection.
  void (*suspend)(psg_session* const*, size_t count);
  void (*close)(psg_session*);
} psg_api;

// The one exported symbol. NULL for another version.
#define PSG_API_VERSION 5
const psg_api* psg_get_api(int version);

#ifdef __cplusplus
}
#endif

#endif  // PENSTOCK_CLIENT_SESSION_SESSION_API_H_
